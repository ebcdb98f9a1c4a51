"""What a server counts of its databases: transactions and rows of each, and whether the counters began anew."""

from app.engines.base import Counters, Tenant
from tests.engines.harness import EngineHost, as_root, kind_of, session_of, tenants
from tests.support.waiting import until

ROWS = 200


async def counters_of(host: EngineHost, tenant: Tenant) -> Counters:
    return (await host.adapter.counters([tenant.name]))[tenant.name]


def grown(before: Counters, after: Counters, name: str) -> int:
    return int(getattr(after, name) - getattr(before, name))


async def _written(host: EngineHost, tenant: Tenant, rows: int) -> bool:
    """PostgreSQL tells at the end of a session at the latest."""
    return ((await counters_of(host, tenant)).rows_written or 0) >= rows


async def test_transactions_and_rows_are_counted_by_database(host: EngineHost) -> None:
    async with tenants(host, 2) as (busy, idle):
        async with session_of(host, busy) as session:
            await session.run("CREATE TABLE counted (id integer)")
            await session.run(f"INSERT INTO counted VALUES {', '.join(['(0)'] * ROWS)}")
            await session.run("TRUNCATE TABLE counted")
        await until(lambda: _written(host, busy, ROWS))
        before = await host.adapter.counters([busy.name, idle.name])
        async with session_of(host, busy) as session, session_of(host, idle):
            for _ in range(10):
                await session.run("BEGIN")
                for _ in range(2):
                    await session.run(f"INSERT INTO counted VALUES {', '.join(['(1)'] * (ROWS // 20))}")
                await session.run("COMMIT")
            await session.run("UPDATE counted SET id = id + 1")
            await session.run("DELETE FROM counted")
        total = 3 * ROWS + (before[busy.name].rows_written or 0)
        await until(lambda: _written(host, busy, total))
        after = await counters_of(host, busy)
        assert grown(before[busy.name], after, "rows_written") == 3 * ROWS
        assert 12 <= grown(before[busy.name], after, "transactions") <= 20
        assert 2 * ROWS <= grown(before[busy.name], after, "rows_read") <= 3 * ROWS
        others = await counters_of(host, idle)
        assert grown(before[idle.name], others, "rows_written") < 5
        assert grown(before[idle.name], others, "transactions") < 5
        assert (after.began, others.began) == (before[busy.name].began, before[idle.name].began)
        if host.flavour == "postgres":
            assert after.cache_reads is not None
            assert grown(before[busy.name], after, "cache_hits") > 0
        else:
            assert after.cache_hits is after.cache_reads is None, "by database this engine counts no pages"


async def test_counters_that_begin_anew_say_so(host: EngineHost) -> None:
    async with tenants(host) as (tenant,):
        before = await counters_of(host, tenant)
        if host.flavour == "postgres":
            await host.as_root_in(tenant, "SELECT pg_stat_reset()")
        elif host.flavour == "mariadb":
            await as_root(host, "FLUSH USER_STATISTICS")
        else:
            await as_root(host, "TRUNCATE performance_schema.events_transactions_summary_by_user_by_event_name")
        after = await counters_of(host, tenant)
        less = any(new < old for old, new in zip(before.witness, after.witness, strict=True))
        assert less if kind_of(host) == "mysql" else after.began != before.began


async def test_what_is_not_there_is_left_out_or_empty(host: EngineHost) -> None:
    assert await host.adapter.counters([]) == {}
    found = await host.adapter.counters(["tnosuchdatabase"])
    assert [(one.transactions, one.rows_read) for one in found.values()] in ([], [(0, 0)])
