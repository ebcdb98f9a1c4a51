"""Whether active databases let their tenants in, with the credentials that their users were given."""

import asyncio
import random
from collections.abc import Iterable
from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.core.secrets import SecretBox
from app.databases import own_logins
from app.engines.base import EngineAdapter, EngineError, Tenant
from app.hosts.adapters import password_place
from app.reconcile.look import Recorded
from app.reconcile.report import Violation
from app.store.session import fetch

RULE = "active_unreachable"
_AT_ONCE = 8
_SOME = 25
"""In one scheduled run on one host: a login takes one of its tenant's connections for a moment."""
_TENANT_FULL = frozenset({"53300", "1203", "1226"})
"""The tenant itself holds all its connections: its database answers."""


async def try_logins(box: SecretBox, adapter: EngineAdapter, databases: Iterable[Recorded]) -> list[Violation]:
    """One short login each, a few at a time."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def attempt(one: Recorded) -> Violation | None:
        assert one.password_sealed is not None
        password = box.open(one.password_sealed, password_place(one.uuid))
        try:
            async with slots:
                await adapter.log_in(Tenant(name=one.engine_name, password=password, marker=one.marker))
        except EngineError as error:
            if error.code in _TENANT_FULL or not await _is_active(one.uuid):
                return None
            return Violation(rule=RULE, subject=str(one.uuid), detail=str(error))
        return None

    tried = list(databases)
    async with own_logins.under_way([one.uuid for one in tried]):
        answers = await asyncio.gather(*map(attempt, tried))
    return [answer for answer in answers if answer is not None]


def active(recorded: Iterable[Recorded]) -> list[Recorded]:
    """Those that must let their tenants in."""
    return [one for one in recorded if one.status is DatabaseStatus.ACTIVE and one.password_sealed is not None]


async def some_idle(adapter: EngineAdapter, databases: list[Recorded]) -> list[Recorded]:
    """A few of them, drawn anew each time. Those with a session open let their tenants in, as one sees, and may be
    about to need their last connection. Raises `EngineError`."""
    drawn = random.sample(databases, min(_SOME, len(databases)))
    busy = await adapter.sessions([one.engine_name for one in drawn])
    return [one for one in drawn if one.engine_name not in busy]


async def _is_active(database: UUID) -> bool:
    """Whether it still is; it may have been deleted while it was tried."""
    return bool(await fetch("SELECT 1 FROM databases WHERE uuid = $1 AND status = 'active'", database))
