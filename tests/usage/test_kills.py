"""Processes that change databases and close periods are killed anywhere: the ledger is what was committed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.store.session import execute, fetch
from app.usage import closing
from tests.support.lone_pool import LonePool
from tests.support.store import execute_at
from tests.support.waiting import until
from tests.usage.histories import KEEP
from tests.usage.killed_once import PERIOD
from tests.usage.ledger_model import LedgerModel, Rates
from tests.usage.test_ledger import stored_ledger

_DATABASES = 4
_PROCESSES = ("change", "change", "close", "close")
_JOURNAL = """
CREATE TABLE test_journal (id bigserial PRIMARY KEY, uuid uuid, at timestamptz, running bool, storage bigint);
GRANT ALL ON test_journal, test_journal_id_seq TO PUBLIC
"""


class Processes:
    """Each is started again when it is killed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._running: list[asyncio.subprocess.Process] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Processes"]:
        try:
            for what in _PROCESSES:
                self._running.append(await self._start(what))
            yield self
        finally:
            for process in self._running:
                process.kill()
                await process.wait()

    async def kill(self, number: int) -> None:
        self._running[number].kill()
        assert await self._running[number].wait() == -9, "it had ended by itself"
        self._running[number] = await self._start(_PROCESSES[number])

    async def _start(self, what: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.usage.killed_once", what, self._dsn)


async def _progress() -> tuple[int, int]:
    """Changes, and closed rows."""
    [row] = await fetch(
        "SELECT (SELECT count(*) FROM test_journal) AS changes, (SELECT count(*) FROM usage_periods) AS closed"
    )
    return row["changes"], row["closed"]


async def _prepared(pool: LonePool, owner_dsn: str) -> None:
    await execute_at(owner_dsn, _JOURNAL)
    await execute("UPDATE usage_clock SET period_seconds = $1", PERIOD)
    host = await pool.api.add_host()
    caller = await pool.api.caller()
    uuids = await pool.add_members(_DATABASES, host)
    await execute(
        "INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month)"
        " SELECT id, now(), 0, false, now()::date FROM databases"
    )
    await execute("UPDATE databases SET team_id = $2 WHERE uuid = any($1::uuid[])", uuids, caller.team_id)
    await execute(
        "INSERT INTO test_journal (uuid, at, running, storage) SELECT database_uuid, at, true, 0 FROM usage_meters"
    )


async def _run(pool: LonePool, owner_dsn: str, kills: int) -> None:
    await _prepared(pool, owner_dsn)
    async with Processes(pool.api.control_dsn).running() as processes:
        for number in range(kills):
            changes, closed = await _progress()

            async def has_gone_on(changes: int = changes, closed: int = closed) -> bool:
                now = await _progress()
                return now[0] > changes + 20 and now[1] > closed

            await until(has_gone_on)
            await processes.kill(number % len(_PROCESSES))

    await closing.close(PERIOD, KEEP)
    [clock] = await fetch("SELECT extract(epoch FROM closed_through)::bigint AS closed FROM usage_clock")
    model = LedgerModel(0, PERIOD)
    for row in await fetch(
        "SELECT uuid, extract(epoch FROM at)::bigint AS at, running, storage FROM test_journal ORDER BY id"
    ):
        model.changes[row["uuid"]].append((row["at"], Rates(row["running"], row["storage"])))
    assert await stored_ledger() == model.usage(clock["closed"])


async def test_a_few_kills(pool: LonePool, control_admin_dsn: str) -> None:
    await _run(pool, control_admin_dsn, 4)


@pytest.mark.soak
async def test_many_kills(pool: LonePool, control_admin_dsn: str) -> None:
    await _run(pool, control_admin_dsn, 200)
