"""Migrations: the same tables however many processes start at once, and nothing of one that died half-way."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.store import session
from app.store.migrate import MigrationFailed, migrate
from app.store.session import fetch
from tests.servers import RunningServer
from tests.store import releases
from tests.support.store import execute_at, new_database, store
from tests.support.waiting import until

_PARTS = """
SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '' FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""

_SLOW_INDEX = """
CREATE FUNCTION slow_index() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_query() LIKE '%INDEX operations_of_team_by_type %' THEN
        PERFORM pg_sleep(1.5);
    END IF;
END $$;
CREATE EVENT TRIGGER slow_index ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION slow_index();
"""


@pytest_asyncio.fixture
async def empty_dsn(control_server: RunningServer) -> str:
    return await new_database(control_server.admin_dsn)


async def parts(dsn: str) -> list[tuple[Any, ...]]:
    """Columns, indexes and constraints."""
    connection = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(_PARTS)]
    finally:
        await connection.close()


async def ready(dsn: str) -> asyncio.subprocess.Process:
    """A process that will migrate when its input is closed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.migrate_once", dsn, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


def begin(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


async def test_eight_processes_at_once(empty_dsn: str, control_admin_dsn: str) -> None:
    processes = await asyncio.gather(*(ready(empty_dsn) for _ in range(8)))
    for process in processes:
        begin(process)
    assert [await process.wait() for process in processes] == [0] * 8
    assert await parts(empty_dsn) == await parts(control_admin_dsn)
    async with store(empty_dsn):
        ran = await fetch("SELECT name FROM migration")
    assert len({row["name"] for row in ran}) == len(ran) > 0


async def test_running_again_changes_nothing(own_store: None, control_admin_dsn: str) -> None:
    before = await parts(control_admin_dsn)
    ran = await fetch("SELECT name FROM migration")
    await migrate()
    assert await parts(control_admin_dsn) == before
    assert await fetch("SELECT name FROM migration") == ran


async def test_a_death_in_the_middle_leaves_nothing(empty_dsn: str, control_admin_dsn: str) -> None:
    blocker: Any = await asyncpg.connect(empty_dsn)
    try:
        # A table that the migration comes to late: it waits there, with others made already.
        held = blocker.transaction()
        await held.start()
        await blocker.execute("CREATE TABLE workflow_starts (n integer)")
        process = await ready(empty_dsn)
        begin(process)
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        await until(lambda: blocker.fetch(waiting))
        process.kill()
        await process.wait()
        await held.rollback()
        others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        await until(lambda: _none(blocker, others))
        assert await parts(empty_dsn) == []
    finally:
        await blocker.close()
    async with store(empty_dsn):
        await migrate()
    assert await parts(empty_dsn) == await parts(control_admin_dsn)


async def test_a_request_under_way_is_no_victim_of_a_migration(empty_dsn: str, control_admin_dsn: str) -> None:
    """It has used a table that migrations come to late, and goes on with one that they have locked by then."""
    releases.load(empty_dsn, releases.releases()[0])
    request: Any = await asyncpg.connect(empty_dsn)
    try:
        async with store(empty_dsn), asyncio.TaskGroup() as group, request.transaction():
            await request.execute("UPDATE users SET name = name")
            group.create_task(migrate())
            await until(lambda: request.fetch("SELECT FROM pg_locks WHERE NOT granted"))
            await request.execute("UPDATE databases SET name = name")
    finally:
        await request.close()
    assert await parts(empty_dsn) == await parts(control_admin_dsn)


async def test_an_index_may_take_longer_than_other_statements(
    empty_dsn: str, control_admin_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases.load(empty_dsn, releases.releases()[0])
    await execute_at(empty_dsn, _SLOW_INDEX)
    monkeypatch.setattr(session, "STATEMENT_SECONDS", 1.0)
    async with store(empty_dsn):
        with pytest.raises(TimeoutError):
            await fetch("SELECT pg_sleep(1.5)")
        await migrate()
    assert await parts(empty_dsn) == await parts(control_admin_dsn)


async def test_a_migration_that_fails_leaves_nothing(empty_dsn: str) -> None:
    async with store(empty_dsn):
        await fetch("CREATE TABLE workflow_starts (n integer)")
        before = await parts(empty_dsn)
        with pytest.raises((MigrationFailed, asyncpg.PostgresError)):
            await migrate()
        assert await parts(empty_dsn) == before


async def _none(connection: Any, query: str) -> bool:
    return not await connection.fetch(query)
