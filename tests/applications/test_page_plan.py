"""A page of a blueprint's applications costs the same however many there are, of whomever, whichever plan PostgreSQL
settles on."""

from uuid import UUID

import asyncpg
import pytest

from app.blueprints.applications import records
from app.blueprints.records import BlueprintRecord, find
from app.blueprints.service import publish
from app.store.session import execute, transaction
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.plans import PLANS, Noted
from tests.support.store import execute_at

SQL = "CREATE TABLE a (id integer)"
ROWS = 20_000
FEW = 28
LIMIT = 26
MOST_OF_OTHERS = 10_000
_APPLIED = """
INSERT INTO blueprint_applications (blueprint_id, blueprint_version, database_id, status, completed_at)
SELECT $1::bigint, 1, d.id, 'completed', now() FROM databases d, generate_series(1, $3::int) WHERE d.uuid = $2
"""


async def _database(caller: Caller) -> UUID:
    return UUID(data_of(await caller.create(), 202)["uuid"])


async def _blueprint(caller: Caller) -> BlueprintRecord:
    uuid = UUID(data_of(await caller.post("/blueprints", {"name": "own", "sql_content": SQL}), 201)["uuid"])
    found = await find(uuid)
    assert found is not None
    return found


async def test_only_the_page_is_read(lone: LoneApi, control_admin_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer than a team's own are very many of another team's, of their blueprint and of the one that all have."""
    caller, stranger = await lone.caller(), await lone.caller()
    mine, foreign = await _database(caller), await _database(stranger)
    own, others = await _blueprint(caller), await _blueprint(stranger)
    async with transaction():
        shared = await publish("shared", SQL, description=None, variables=None)
    applied = (
        (own, mine, ROWS // 2),
        (shared, mine, FEW),
        (others, foreign, ROWS),
        (shared, foreign, ROWS),
    )
    for blueprint, database, count in applied:
        await execute(_APPLIED, blueprint.id, database, count)
    await execute_at(control_admin_dsn, "VACUUM ANALYZE blueprint_applications")
    noted = Noted()
    monkeypatch.setattr(records, "fetch_all", noted)
    connection = await asyncpg.connect(lone.control_dsn)
    try:
        for plan in PLANS:
            await connection.execute(f"SET plan_cache_mode = {plan}")
            # The rows that the page is chosen by, and the page's own. What all have is looked through only so far.
            for blueprint, reach, most in (
                (own, None, [2 * LIMIT]),
                (shared, [mine], [2 * LIMIT]),
                (shared, None, [MOST_OF_OTHERS, 2 * LIMIT]),
            ):
                page = await records.list_of_blueprint(blueprint, [caller.team_id], reach, after=None, limit=LIMIT)
                assert [(one.blueprint_id, one.database) for one in page] == [(blueprint.id, mine)] * LIMIT
                assert [one.id for one in page] == sorted((one.id for one in page), reverse=True)
                rest = await records.list_of_blueprint(
                    blueprint, [caller.team_id], reach, after=page[3].id, limit=LIMIT
                )
                assert [one.id for one in rest[: LIMIT - 4]] == [one.id for one in page[4:]]
                read = await noted.rows_read(connection, "blueprint_applications")
                assert all(one <= bound for one, bound in zip(read, 2 * most, strict=True)), (plan, read)
    finally:
        await connection.close()
