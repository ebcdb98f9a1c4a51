"""A page costs the same in a list of any length, whichever plan PostgreSQL settles on."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.databases.filters import DatabaseFilters
from app.databases.records import PAGE
from app.databases.search import NAMES, REACHES, STATEMENTS, STEPS
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


_RARE = {"status": "paused", "region": "far", "plan": "pro", "engine": "mysql", "label": "rare:yes"}
_COMMON = {"status": "active", "region": "us-east-1", "plan": "free", "engine": "postgres", "label": "all:yes"}
_PLANS = ("force_generic_plan", "force_custom_plan")
_TYPES = "bigint[], uuid, text[], bigint, text, text[], text[], text[], text[], text[]"


@dataclass
class Searches:
    """Of one team's list of `ROWS`, of which there are no statistics: the oldest 30 have what is rare."""

    connection: asyncpg.Connection
    team: int

    async def plan(self, walk: str, step: int, value: str, filters: DatabaseFilters) -> dict[str, Any]:
        """What became of the walk's statement."""
        given = ((self.team,), None, (value,), 26, *filters.values)
        return await self._explain(f"({_TYPES}) AS {STATEMENTS[walk, step]}", given)

    async def reach(self, step: int, name: str | None, lists: dict[str, str]) -> dict[str, Any]:
        given = ((self.team,), None, tuple(range(len(lists))), tuple(lists), name, tuple(lists.values()))
        return await self._explain(f"(bigint[], uuid, int[], text[], text, text[]) AS {REACHES[step]}", given)

    async def _explain(self, statement: str, given: tuple[Any, ...]) -> dict[str, Any]:
        literals = ", ".join(map(_literal, given))
        await self.connection.execute(f"PREPARE search {statement}")
        (row,) = await self.connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE search ({literals})")
        await self.connection.execute("DEALLOCATE search")
        found: dict[str, Any] = json.loads(row[0])[0]["Plan"]
        return found


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return "'{" + ",".join(f'"{one}"' for one in value) + "}'"
    return "NULL" if value is None else f"'{value}'"


@pytest_asyncio.fixture
async def searches(lone: LoneApi) -> AsyncIterator[Searches]:
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
        await connection.execute(
            "UPDATE databases SET status = 'paused', region = 'far', plan = 'pro', engine = 'mysql', name = 'rare',"
            " labels = ARRAY['rare:yes'] WHERE id IN (SELECT id FROM databases ORDER BY id LIMIT 30)"
        )
        yield Searches(connection, caller.team_id)
    finally:
        await connection.close()


async def test_a_search_reads_its_own_list_alone(searches: Searches) -> None:
    for plan in _PLANS:
        await searches.connection.execute(f"SET plan_cache_mode = {plan}")
        for walk, value in [("name", ""), ("name alone", ""), *_RARE.items()]:
            filters = DatabaseFilters(name="rare" if walk.startswith("name") else None)
            found = await searches.plan(walk, STEPS[-1], value, filters)
            # Of names alone the newest are looked at too, and those in the index are there as they were before.
            most = 3 * 30 + (STEPS[0] if walk == "name alone" else 0)
            assert (found["Actual Rows"], rows_read(found) <= most) == (26, True), (plan, walk, rows_read(found), found)


async def test_no_step_looks_at_more_than_its_rows(searches: Searches) -> None:
    """Nothing matches what is asked for beside it, so that the whole step is gone through."""
    step, others = STEPS[0], DatabaseFilters(plans=("none",))
    for plan in _PLANS:
        await searches.connection.execute(f"SET plan_cache_mode = {plan}")
        for walk, value in [("all", ""), *_COMMON.items()]:
            found = await searches.plan(walk, step, value, others)
            assert (found["Actual Rows"], rows_read(found) <= step + 1) == (1, True), (plan, walk, found)
        found = await searches.plan("name", step, "", DatabaseFilters(name="db", plans=("none",)))
        assert (found["Actual Rows"], rows_read(found) <= step + 5) == (1, True), (plan, found)
        # What many begin with is found among the newest, and none of the names is looked at.
        found = await searches.plan("name alone", step, "", DatabaseFilters(name="db"))
        assert (found["Actual Rows"], rows_read(found) <= 3 * 26) == (26, True), (plan, found)
    await searches.connection.execute(
        "UPDATE databases SET name = 'new' WHERE id IN (SELECT id FROM databases ORDER BY id DESC LIMIT $1)", step
    )
    found = await searches.plan("name alone", step, "", DatabaseFilters(name="db"))
    assert found["Actual Rows"] == 1
    assert NAMES[step] < rows_read(found) <= NAMES[step] + 2 * step + 5, "old entries of the index are skipped"


async def test_how_far_lists_reach_is_read_off_their_indexes(searches: Searches, control_admin_dsn: str) -> None:
    step = STEPS[0]
    await execute_at(control_admin_dsn, "VACUUM databases, database_labels")
    for plan in _PLANS:
        await searches.connection.execute(f"SET plan_cache_mode = {plan}")
        found = await searches.reach(step, "db", {"name": "", **_COMMON})
        assert found["Actual Rows"] == 1
        assert entries_read(found) == [step + 1.0] * (1 + len(_COMMON)), (plan, found)


def entries_read(node: dict[str, Any]) -> list[float]:
    """By scans of indexes that read no row."""
    own = [node["Actual Rows"] * node["Actual Loops"]] if node["Node Type"] == "Index Only Scan" else []
    assert "Relation Name" not in node or node["Node Type"] == "Index Only Scan" or not node["Actual Loops"]
    return own + [each for inner in node.get("Plans", []) for each in entries_read(inner)]


def rows_read(node: dict[str, object], table: str = "databases") -> float:
    """Of the table, those thrown away again included."""
    own = 0.0
    if node.get("Relation Name") == table:
        kept, filtered, loops = (node.get(key, 0) for key in ("Actual Rows", "Rows Removed by Filter", "Actual Loops"))
        assert isinstance(kept, int | float)
        assert isinstance(filtered, int | float)
        assert isinstance(loops, int | float)
        own = (kept + filtered) * loops
    inner = node.get("Plans", [])
    assert isinstance(inner, list)
    return own + sum(rows_read(each, table) for each in inner)
