"""A claim and the look before it cost the same however many databases there are and were, whichever plan PostgreSQL
settles on."""

import json

import asyncpg
import pytest

from app.pool.claim import CLAIM
from app.pool.ready import FIND
from tests.model.test_page_plan import rows_read
from tests.support.lone_pool import LonePool

_ROWS = 20_000


@pytest.mark.parametrize("plan", ["force_generic_plan", "force_custom_plan"])
async def test_only_the_members_are_read(pool: LonePool, plan: str) -> None:
    caller = await pool.api.caller()
    host = await pool.api.add_host()
    await pool.add_members(3, host, team_id=caller.team_id)
    connection = await asyncpg.connect(pool.api.control_dsn)
    try:
        await connection.execute(
            "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
            " connections)"
            " SELECT gen_random_uuid(), team_id, 'db', engine, region, plan, status, host_id, 't', connections"
            " FROM (SELECT * FROM databases LIMIT 1) AS one, generate_series(1, $1::int)",
            _ROWS,
        )
        await pool.add_members(3, host)
        await connection.execute("VACUUM ANALYZE databases")
        kinds = "text, text, bigint, bigint, text, text, float8, int, int, int, bigint[], bigint[]"
        await connection.execute(f"SET plan_cache_mode = {plan}; PREPARE claim ({kinds}) AS {CLAIM}")
        values = f"'postgres', NULL, {caller.team_id}, {caller.user_id}, 'db', 'free', NULL, NULL, NULL, 10"
        (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE claim ({values}, '{{}}', '{{}}')")
        # Three members, and the chosen one twice more.
        assert rows_read(json.loads(row[0])[0]["Plan"]) <= 3 + 2
        await connection.execute(f"PREPARE find (text, text, int, bigint[], int) AS {FIND}")
        (row,) = await connection.fetch("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE find ('postgres', NULL, 10, '{}', 1)")
        assert rows_read(json.loads(row[0])[0]["Plan"]) <= 3
    finally:
        await connection.close()
