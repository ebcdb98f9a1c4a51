"""What the cases of interrupted workflows share."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from temporalio.client import Client

from app.contracts.reconcile import HostRef
from app.core.secrets import SecretBox
from app.hosts.adapters import Adapters
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from app.upkeep.reconcile.records import check_records
from app.upkeep.reconcile.service import reconcile_host, reconcile_records
from app.upkeep.reconcile.snapshot import PATIENCE
from tests.support.client import Caller
from tests.support.gates import Gates

LONG_AGO = "now() - interval '1 hour'"
Settled = Callable[[], Awaitable[object]]


@dataclass
class ServiceUnderTest:
    """The service, with workers in this process."""

    caller: Caller
    client: Client
    gates: Gates
    box: SecretBox
    adapters: Adapters
    host: HostRef
    other: HostRef
    """One more host, on which nothing is placed but by who asks for it."""
    backups: Path
    """Where backups are kept."""
    source: tuple[str, str] | None = None
    """A database and a backup of it that several cases use."""
    damaged: str | None = None
    """A damaged backup, likewise."""

    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def later(self, request: Coroutine[Any, Any, Any]) -> None:
        """Beside what follows; nobody asks for its answer."""
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def reconcile(self) -> None:
        await reconcile_records(self.client)
        for host in (self.host, self.other):
            await reconcile_host(DEFAULT_PLANS, self.box, self.adapters, host, None)

    async def row(self, database: str) -> dict[str, Any]:
        [row] = await fetch("SELECT * FROM databases WHERE uuid = $1", UUID(database))
        return dict(row)


@dataclass
class Begun:
    """`hurry` makes its row as old as it would be by the time that somebody wonders."""

    settled: Settled
    hurry: Callable[[], Awaitable[object]]


Begin = Callable[[ServiceUnderTest], Awaitable[Begun]]


@dataclass
class Case:
    workflow: str
    begin: Begin
    skipped: frozenset[str] = field(default_factory=frozenset)
    """Steps that come before those of this course."""
    waits: str | None = None
    """A step for which it waits when it can't be done now."""
    in_the_run: bool = True
    """Whether the run of all tests has it, each step with one of the operations; the long form has all of them."""


async def hurried(database: str) -> None:
    await fetch(
        f"UPDATE databases SET created_at = {LONG_AGO}, updated_at = {LONG_AGO}, access_changed_at = {LONG_AGO},"
        f" provisioned_at = CASE WHEN provisioned_at IS NULL THEN NULL ELSE {LONG_AGO} END,"
        f" deleted_at = CASE WHEN status = 'deleted' THEN {LONG_AGO} END,"
        f" destroy_at = CASE WHEN status = 'deleted' THEN {LONG_AGO} END WHERE uuid = $1",
        UUID(database),
    )
    await fetch(
        f"UPDATE blueprint_applications a SET created_at = {LONG_AGO},"
        f" started_at = CASE WHEN started_at IS NULL THEN NULL ELSE {LONG_AGO} END"
        " FROM databases d WHERE d.id = a.database_id AND d.uuid = $1",
        UUID(database),
    )


def about(place: ServiceUnderTest, database: str, is_settled: Callable[[dict[str, Any]], object]) -> Begun:
    async def settled() -> bool:
        about_it = [one for one in await check_records(PATIENCE) if database in (one.subject, one.detail)]
        return bool(is_settled(await place.row(database))) and not about_it

    return Begun(settled, lambda: hurried(database))
