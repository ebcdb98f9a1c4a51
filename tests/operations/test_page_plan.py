"""A page of operations, and the operation of a workflow, cost the same however many there are, whichever plan
PostgreSQL settles on."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from app.operations import listing, records
from app.operations.kinds import OperationStatus, OperationType
from app.operations.listing import OperationFilters
from app.operations.records import OperationRecord
from tests.model.test_page_plan import rows_read
from tests.support.in_process import LoneApi
from tests.support.store import execute_at

ROWS = 20_000
LIMIT = 26
_FILTERS = {
    "status": OperationFilters(status=OperationStatus.WAITING),
    "type": OperationFilters(type=OperationType.RESTORE),
    "both": OperationFilters(type=OperationType.BACKUP, status=OperationStatus.WAITING),
    "both, which never meet": OperationFilters(type=OperationType.ROTATE, status=OperationStatus.SUCCEEDED),
    "what all have": OperationFilters(type=OperationType.BACKUP, status=OperationStatus.SUCCEEDED),
}
"""Of the rows half are backups that succeeded, and half rotations that failed; the others are the oldest."""


@dataclass
class Statements:
    """Those that the service runs, explained."""

    connection: asyncpg.Connection
    team: int
    database: UUID
    asked: list[tuple[str, tuple[Any, ...]]]

    async def rows_read(self) -> float:
        """By the last one that was asked."""
        statement, given = self.asked.pop()
        await self.connection.execute(f"PREPARE asked AS {statement}")
        literals = ", ".join(map(_literal, given))
        (row,) = await self.connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked ({literals})")
        await self.connection.execute("DEALLOCATE asked")
        return rows_read(json.loads(row[0])[0]["Plan"], "operations")


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "'{" + ",".join(map(str, value)) + "}'"
    return "NULL" if value is None else f"'{value}'"


@pytest_asyncio.fixture(params=["force_generic_plan", "force_custom_plan"])
async def statements(
    lone: LoneApi, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Statements]:
    caller = await lone.caller()
    database = UUID((await caller.create()).json()["data"]["uuid"])
    connection = await asyncpg.connect(lone.control_dsn)
    asked: list[tuple[str, tuple[Any, ...]]] = []

    async def note(_: type[OperationRecord], statement: str, *given: Any) -> list[OperationRecord]:
        asked.append((statement, given))
        return []

    async def note_one(_: type[OperationRecord], statement: str, *given: Any) -> None:
        asked.append((statement, given))

    monkeypatch.setattr(listing, "fetch_all", note)
    monkeypatch.setattr(records, "fetch_one", note_one)
    try:
        await connection.execute(
            "INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps, workflow_id, finished_at)"
            " SELECT gen_random_uuid(), team_id, id, engine, of.type, of.status, '[]', 'workflow/' || n, now()"
            " FROM databases, generate_series(1, $2::int) AS n, LATERAL (SELECT"
            " CASE WHEN n <= 30 THEN 'restore' WHEN n % 2 = 0 THEN 'backup' ELSE 'rotate' END AS type,"
            " CASE WHEN n <= 30 THEN 'waiting' WHEN n % 2 = 0 THEN 'succeeded' ELSE 'failed' END AS status) AS of"
            " WHERE uuid = $1",
            database,
            ROWS,
        )
        await connection.execute(f"SET plan_cache_mode = {request.param}")
        yield Statements(connection, caller.team_id, database, asked)
    finally:
        await connection.close()


@pytest.mark.parametrize("analyzed", [False, True])
async def test_filters_read_no_more_than_a_page_of_each_type_and_status(
    statements: Statements, control_admin_dsn: str, analyzed: bool
) -> None:
    if analyzed:
        await execute_at(control_admin_dsn, "VACUUM ANALYZE operations")
    middle = await statements.connection.fetchval(
        "SELECT uuid FROM operations WHERE type = 'backup' ORDER BY id OFFSET $1 LIMIT 1", ROWS // 4
    )
    for name, filters in _FILTERS.items():
        for of_database in (None, statements.database):
            for after in (None, middle):
                chosen = OperationFilters(database=of_database, status=filters.status, type=filters.type)
                await listing.list_owned([statements.team], chosen, after=after, limit=LIMIT)
                read = await statements.rows_read()
                assert read <= LIMIT + 1, (name, of_database, after)  # the cursor's own


async def test_a_page_of_all_reads_that_page_alone(statements: Statements, control_admin_dsn: str) -> None:
    # As autovacuum leaves it: of a table that nobody has counted yet PostgreSQL may guess that it is small.
    await execute_at(control_admin_dsn, "VACUUM ANALYZE operations")
    for of_database in (None, statements.database):
        await listing.list_owned([statements.team], OperationFilters(database=of_database), after=None, limit=LIMIT)
        assert await statements.rows_read() <= LIMIT


async def test_who_waits_for_the_operation_of_a_workflow_reads_no_other_databases(
    lone: LoneApi, statements: Statements, control_admin_dsn: str
) -> None:
    """They ask again and again, while others have millions. What has ended is in no index of workflows."""
    caller = await lone.caller()
    own = UUID((await caller.create()).json()["data"]["uuid"])
    await statements.connection.execute(
        "WITH others AS (INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id,"
        " engine_name, connections) SELECT gen_random_uuid(), team_id, 'db', engine, region, plan, status, host_id,"
        " 't', connections FROM databases, generate_series(1, 500) WHERE uuid = $1 RETURNING id, team_id)"
        " INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps)"
        " SELECT gen_random_uuid(), team_id, id, 'postgres', 'create', 'succeeded', '[]'"
        " FROM others, generate_series(1, 10)",
        own,
    )
    await execute_at(control_admin_dsn, "VACUUM ANALYZE operations")
    await statements.connection.execute(
        "UPDATE operations o SET workflow_id = 'restore-database/mine', finished_at = now()"
        " FROM databases d WHERE d.id = o.database_id AND d.uuid = $1",
        own,
    )
    for name in ("restore-database/mine", "restore-database/none"):
        await records.find_of_workflow(own, name)
        assert await statements.rows_read() <= 1, name
