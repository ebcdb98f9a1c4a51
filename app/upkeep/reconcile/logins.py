"""Whether active databases accept the credentials that their users were given."""

import asyncio
import math
import random
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from app.contracts.base import DatabaseStatus
from app.core.secrets import InvalidSecret, SecretBox
from app.credentials.logins import other_logins
from app.databases import credentials, records
from app.databases.hosted import RecordedDatabase, is_active
from app.databases.passwords import password_place, tenant_of
from app.engines.base import CredentialsRefused, EngineAdapter, EngineError, Tenant, TenantFull
from app.hosts.records import Host
from app.quotas import own_logins
from app.upkeep.reconcile import findings
from app.upkeep.reconcile.accounts import ACCOUNT_RULES
from app.upkeep.reconcile.findings import Violation

RULE = "active_unreachable"
TRIED_RULES = (RULE, *ACCOUNT_RULES)
"""The rules whose violations only a run can end that tries the database."""
_CONCURRENCY = 8
_FEWEST = 25
_RUNS = 24
"""Every database of a host is tried once in this many scheduled runs, but at least `_FEWEST` of them in each run. A
login uses one of the tenant's connections for a moment."""
_MOST_AGAIN = 20
"""Databases with findings that a run tries before their turn, so that what was mended is known soon."""


class LoginRefusal(msgspec.Struct, frozen=True):
    violation: Violation
    recorded: RecordedDatabase
    credentials: bool
    """The tenant may have caused it, and it can be repaired."""


async def try_logins(
    box: SecretBox, adapter: EngineAdapter, databases: Iterable[RecordedDatabase]
) -> list[LoginRefusal]:
    """Tries short logins to each database, a few databases at a time. A database whose password can't be opened counts
    as refused too, and keeps no other from its turn."""
    slots = asyncio.Semaphore(_CONCURRENCY)

    async def attempt(one: RecordedDatabase) -> LoginRefusal | None:
        try:
            async with slots:
                await _log_in(box, adapter, one)
        except (EngineError, InvalidSecret) as error:
            if not await is_active(one.uuid):
                return None
            violation = Violation(rule=RULE, subject=str(one.uuid), detail=str(error))
            return LoginRefusal(violation, one, isinstance(error, CredentialsRefused))
        return None

    tried = list(databases)
    async with own_logins.under_way([one.uuid for one in tried]):
        answers = await asyncio.gather(*map(attempt, tried))
    return [answer for answer in answers if answer is not None]


async def _log_in(box: SecretBox, adapter: EngineAdapter, one: RecordedDatabase) -> None:
    """Logs in with every credential that the database must accept. A database that is full answers, and a credential
    that ended meanwhile doesn't count. Raises `EngineError`."""
    assert one.password_sealed is not None
    password = box.open(one.password_sealed, password_place(one.uuid))
    tenant = Tenant(name=one.engine_name, login=one.login, password=password, marker=one.marker)
    with suppress(TenantFull):
        try:
            await adapter.log_in(tenant)
        except CredentialsRefused:
            record = await records.find(one.uuid)
            if record is None or record.password_sealed == one.password_sealed:
                raise
            # Rotated since it was read.
            await adapter.log_in(tenant_of(record, box))
    for login in await other_logins(one.uuid, box):
        with suppress(TenantFull):
            try:
                await adapter.log_in_as(tenant, login)
            except CredentialsRefused:
                if login in await other_logins(one.uuid, box):
                    raise


def active(recorded: Iterable[RecordedDatabase]) -> list[RecordedDatabase]:
    """The databases that must accept logins."""
    return [one for one in recorded if one.status is DatabaseStatus.ACTIVE and one.password_sealed is not None]


async def due(host: Host, adapter: EngineAdapter, databases: list[RecordedDatabase]) -> list[RecordedDatabase]:
    """The databases to try in this run: those whose turn it is, and beside them some with findings. One that has open
    sessions and only one free connection is skipped, because its tenant may need it. Raises `EngineError`."""
    limit = max(_FEWEST, math.ceil(len(databases) / _RUNS))
    by_uuid = {one.uuid: one for one in databases}
    chosen = await credentials.untried_longest(host.id, list(by_uuid), limit)
    doubtful = {str(uuid): uuid for uuid in by_uuid.keys() - set(chosen)}
    found = [doubtful[one] for one in await findings.subjects_of(host.id, TRIED_RULES) if one in doubtful]
    # At random, or the same ones would always stand in front of the rest.
    chosen += random.sample(found, min(len(found), _MOST_AGAIN))
    await credentials.note_tried(chosen)
    drawn = [by_uuid[uuid] for uuid in chosen]
    open_sessions = await adapter.sessions([one.engine_name for one in drawn])
    return [one for one in drawn if _leaves_room(len(open_sessions.get(one.engine_name, ())), one.connections)]


def _leaves_room(held: int, limit: int) -> bool:
    """Whether a login takes nobody's place. When all connections are in use the login is refused, but its password
    is checked first."""
    return held == 0 or held != limit - 1
