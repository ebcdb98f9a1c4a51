"""A page costs the same in a list of any length, whichever plan PostgreSQL settles on."""

import json

import asyncpg
import pytest

from app.databases.filters import DatabaseFilters
from app.databases.records import PAGE
from app.databases.search import STATEMENTS, STEPS
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


_WANTED = {"status": "paused", "region": "far", "plan": "pro", "engine": "mysql", "label": "rare:yes"}


@pytest.mark.parametrize("plan", ["force_generic_plan", "force_custom_plan"])
async def test_a_search_reads_its_own_list_alone(lone: LoneApi, plan: str) -> None:
    """The oldest 30 have what is looked for, and statistics know of nothing like it."""
    caller = await lone.caller()
    await caller.create()
    connection = await asyncpg.connect(lone.control_dsn)
    try:
        await connection.execute(
            "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
            " connections, labels)"
            " SELECT gen_random_uuid(), team_id, 'db', engine, region, plan, 'active', host_id, 't', connections,"
            " ARRAY['all:yes'] FROM (SELECT * FROM databases LIMIT 1) AS one, generate_series(1, $1::int)",
            ROWS,
        )
        await connection.execute("VACUUM ANALYZE databases, database_labels")
        await connection.execute(
            "UPDATE databases SET status = 'paused', region = 'far', plan = 'pro', engine = 'mysql', name = 'rare',"
            " labels = ARRAY['rare:yes'] WHERE id IN (SELECT id FROM databases ORDER BY id LIMIT 30)"
        )
        await connection.execute(f"SET plan_cache_mode = {plan}")
        step = STEPS[-1]
        for walk, name in [("name", "rare"), ("name alone", "rare"), *((walk, None) for walk in _WANTED)]:
            filters = DatabaseFilters(name=name)
            types = "bigint[], uuid, text[], bigint, text, text[], text[], text[], text[], text[]"
            await connection.execute(f"PREPARE search ({types}) AS {STATEMENTS[walk, step]}")
            values = ["NULL" if value is None else "'{}'" if value == () else f"'{value}'" for value in filters.values]
            given = f"'{{{caller.team_id}}}', NULL, '{{{_WANTED.get(walk, 'x')}}}', 26, {', '.join(values)}"
            (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE search ({given})")
            found = json.loads(row[0])[0]["Plan"]
            # The index of names is looked at twice: how many there are, and where they stand in lists.
            assert (found["Actual Rows"], rows_read(found) <= 3 * 30) == (26, True), (walk, found)
            await connection.execute("DEALLOCATE search")
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
