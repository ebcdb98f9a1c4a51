"""A page costs the same in a list of any length, whichever plan PostgreSQL settles on."""

import json

import asyncpg
import pytest

from app.databases.records import PAGE
from tests.support.in_process import LoneApi
from tests.support.store import execute_at

ROWS = 20_000


@pytest.mark.parametrize("plan", ["force_generic_plan", "force_custom_plan"])
async def test_only_the_page_is_read(lone: LoneApi, control_admin_dsn: str, plan: str) -> None:
    few, many = await lone.caller(), await lone.caller()
    for _ in range(3):
        await few.create()
    connection = await asyncpg.connect(lone.control_dsn)
    try:
        await connection.execute(
            "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
            " connections)"
            " SELECT gen_random_uuid(), $1, 'db', engine, region, plan, status, host_id, 't', connections"
            " FROM (SELECT * FROM databases LIMIT 1) AS one, generate_series(1, $2::int)",
            many.team_id,
            ROWS,
        )
        await execute_at(control_admin_dsn, "VACUUM ANALYZE databases")
        await connection.execute(f"SET plan_cache_mode = {plan}; PREPARE page (bigint[], uuid, bigint) AS {PAGE}")
        middle = await connection.fetchval(
            "SELECT uuid FROM databases WHERE team_id = $1 ORDER BY id OFFSET $2 LIMIT 1", many.team_id, ROWS // 2
        )
        for teams, cursor in (([few], "NULL"), ([many], f"'{middle}'"), ([few, many], "NULL")):
            ids = ",".join(str(team.team_id) for team in teams)
            (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE page ('{{{ids}}}', {cursor}, 26)")
            assert rows_read(json.loads(row[0])[0]["Plan"]) <= 26 * len(teams) + 1  # the cursor's own
    finally:
        await connection.close()


def rows_read(node: dict[str, object]) -> float:
    """Of `databases`, those thrown away again included."""
    own = 0.0
    if node.get("Relation Name") == "databases":
        kept, filtered, loops = (node.get(key, 0) for key in ("Actual Rows", "Rows Removed by Filter", "Actual Loops"))
        assert isinstance(kept, int | float)
        assert isinstance(filtered, int | float)
        assert isinstance(loops, int | float)
        own = (kept + filtered) * loops
    inner = node.get("Plans", [])
    assert isinstance(inner, list)
    return own + sum(rows_read(each) for each in inner)
