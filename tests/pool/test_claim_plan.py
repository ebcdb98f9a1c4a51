"""Finding a member and locking one cost the same however many databases there are and were, whichever plan PostgreSQL
settles on."""

import json

import asyncpg
import pytest

from app.databases.ownership import FIND_READY, LOCK_READY
from tests.model.test_page_plan import rows_read
from tests.support.lone_pool import LonePool
from tests.support.store import execute_at

_ROWS = 20_000


@pytest.mark.parametrize("plan", ["force_generic_plan", "force_custom_plan"])
async def test_only_the_members_are_read(pool: LonePool, control_admin_dsn: str, plan: str) -> None:
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
        await execute_at(control_admin_dsn, "VACUUM ANALYZE databases")
        await connection.execute(f"SET plan_cache_mode = {plan}")
        for name, sql in (("lock", LOCK_READY), ("find", FIND_READY)):
            last = "bigint[], int" if name == "find" else "bigint[], bigint[]"
            value = 3 if name == "find" else "'{}'"
            await connection.execute(f"PREPARE {name} (text, text, int, {last}) AS {sql}")
            (row,) = await connection.fetch(
                f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {name} ('postgres', NULL, 10, '{{}}', {value})"
            )
            # Three members; the chosen one once more where it is locked.
            assert rows_read(json.loads(row[0])[0]["Plan"]) <= 3 + 1, name
    finally:
        await connection.close()
