"""What all tenants of a server use up together: whoever takes too much of it is ended, and nobody else is."""

from pathlib import Path

import pytest

from app.engines.base import EngineError, HostUnavailable, SessionLimits, SessionsEnded, Tenant
from app.engines.mysql import sharing
from app.engines.postgres.connections import PostgresConnections
from tests import servers
from tests.engines.harness import EngineHost, Session, as_root, kind_of, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.support.waiting import until

NEVER = SessionLimits(idle_transaction_seconds=3600, transaction_seconds=3600)
# A service that tests share has room in its server's lock table, which it gives back for moments.
LONE_POSTGRES = pytest.mark.parametrize("lone_host", ["postgres"], indirect=True)
OPEN = ("CREATE TABLE kept (n INT)", "BEGIN", "INSERT INTO kept VALUES (1)")


async def _is_over(session: Session) -> bool:
    try:
        await session.run("SELECT 1")
    except Exception:  # whatever its driver makes of it
        return True
    return False


async def _logs_in(host: EngineHost, tenant: Tenant) -> bool:
    """The server gives up what a session held a moment after its end."""
    try:
        await host.adapter.log_in(tenant)
    except EngineError:
        return False
    return True


async def _ended(host: EngineHost, tenant: Tenant, limits: SessionLimits) -> list[SessionsEnded]:
    """InnoDB tells of a transaction a moment after it began."""
    return await until(lambda: host.adapter.end_excessive_sessions([tenant.name], limits))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (SessionLimits(idle_transaction_seconds=0), "idle_transaction"),
        (SessionLimits(transaction_seconds=0), "long_transaction"),
    ],
)
async def test_a_transaction_that_stays_open_is_ended(host: EngineHost, limits: SessionLimits, reason: str) -> None:
    async with (
        tenants(host, 2) as [tenant, other],
        session_of(host, tenant) as holding,
        session_of(host, other) as idle,
    ):
        for statement in OPEN:
            await holding.run(statement)
        assert await host.adapter.end_excessive_sessions([tenant.name, other.name], NEVER) == []
        assert await host.adapter.end_excessive_sessions([other.name], limits) == [], (
            "not those of a name that wasn't given"
        )
        assert await _ended(host, tenant, limits) == [SessionsEnded(tenant=tenant.name, reason=reason)]
        await until(lambda: _is_over(holding))
        assert await idle.run("SELECT 1") == [(1,)]


@LONE_POSTGRES
async def test_whoever_fills_the_lock_table_is_ended_while_nobody_can_log_in(lone_host: EngineHost) -> None:
    host = lone_host
    async with tenants(host, 2) as [tenant, other]:
        await host.adapter.end_excessive_sessions([tenant.name, other.name], NEVER)
        async with session_of(host, tenant) as holding:
            taking = "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 1000000) n"
            assert await refusal(holding, taking) == "53200"
            with pytest.raises(EngineError) as refused:
                await host.adapter.log_in(other)
            assert refused.value.code == "53200"
            assert not isinstance(refused.value, HostUnavailable), "the host is well"
            locks = SessionsEnded(tenant=tenant.name, reason="locks")
            assert await host.adapter.end_excessive_sessions([tenant.name, other.name], NEVER) == [locks]
            await until(lambda: _is_over(holding))
        await until(lambda: _logs_in(host, other))


@LONE_POSTGRES
async def test_the_room_of_our_own_session_may_be_taken_meanwhile(lone_host: EngineHost) -> None:
    host = lone_host
    connections = PostgresConnections(host.adapter.address)
    taking = "SELECT count(pg_advisory_lock(n)) FROM generate_series({}, {}) n"
    async with tenants(host) as [tenant], session_of(host, tenant) as holding:
        async with connections.long_lived():
            pass
        assert await refusal(holding, taking.format(1, 1_000_000)) == "53200"
        async with connections.long_lived() as ours:
            assert await refusal(holding, taking.format(1_000_001, 2_000_000)) == "53200"
            assert await ours.fetchval("SELECT 1") == 1
        await connections.close()
    await until(lambda: _has_no_session(host, tenant))


async def test_no_more_holders_of_locks_are_ended_than_make_room(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("only PostgreSQL has one table of locks for all")
    taking = "SELECT count(pg_advisory_lock(n)) FROM generate_series({}, {}) n"
    async with (
        tenants(host, 3) as [most, more, few],
        session_of(host, most) as first,
        session_of(host, more) as second,
        session_of(host, few) as third,
    ):
        await first.run(taking.format(1, 10_000))
        await second.run(taking.format(1, 1_000))
        await third.run(taking.format(1, 50))
        names = [most.name, more.name, few.name]
        # A tenth of 64 locks for each of 1,000 sessions.
        tenth = SessionLimits(idle_transaction_seconds=3600, transaction_seconds=3600, shared_percent=10)
        ended = await host.adapter.end_excessive_sessions(names, tenth)
        assert ended == [SessionsEnded(tenant=most.name, reason="locks")]
        await until(lambda: _is_over(first))
        # The client hears of it before the server has released the locks.
        await until(lambda: _has_no_session(host, most))
        # Even where there is to be room for none: who holds what every session may is let be.
        none = SessionLimits(idle_transaction_seconds=3600, transaction_seconds=3600, shared_percent=0)
        ended = await host.adapter.end_excessive_sessions(names, none)
        assert ended == [SessionsEnded(tenant=more.name, reason="locks")]
        assert await third.run("SELECT 1") == [(1,)]


async def _has_no_session(host: EngineHost, tenant: Tenant) -> bool:
    return not await as_root(host, f"SELECT pid FROM pg_stat_activity WHERE usename = '{tenant.name}'")


async def test_a_forgotten_prepared_transaction_is_rolled_back(tmp_path: Path) -> None:
    async with servers.postgres(tmp_path, max_prepared_transactions="5") as server:
        host = PostgresHost(server)
        await host.prepare()
        async with tenants(host) as [tenant]:
            async with session_of(host, tenant) as session:
                for statement in (*OPEN, "PREPARE TRANSACTION 'it''s mine'"):
                    await session.run(statement)
            assert await host.adapter.end_excessive_sessions([tenant.name], NEVER) == []
            ended = await host.adapter.end_excessive_sessions([tenant.name], SessionLimits(transaction_seconds=0))
            assert ended == [SessionsEnded(tenant=tenant.name, reason="prepared_transaction")]
            assert await as_root(host, "SELECT gid FROM pg_prepared_xacts") == []
        await host.adapter.close()


async def _branch(host: EngineHost, tenant: Tenant, name: str) -> None:
    """Prepared, and left behind by its session."""
    async with session_of(host, tenant) as session:
        for statement in (
            "CREATE TABLE IF NOT EXISTS kept (n INT)",
            f"XA START '{name}'",
            "INSERT INTO kept VALUES (1)",
            f"XA END '{name}'",
            f"XA PREPARE '{name}'",
        ):
            await session.run(statement)


async def _concern(host: EngineHost) -> str | None:
    [told] = [one for one in await host.adapter.shared_resources() if one.name == "detached_transactions"]
    return told.concern


async def test_a_branch_without_a_session_is_ended_or_named(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind_of(host) != "mysql":
        pytest.skip("PostgreSQL tells whose a prepared transaction is")
    async with tenants(host, 2) as [tenant, other]:
        for one in (tenant, other):
            await _branch(host, one, one.name)
        names, now = [tenant.name, other.name], SessionLimits(transaction_seconds=0)
        assert await _concern(host) is None, "they may yet be committed"
        monkeypatch.setattr(sharing, "DETACHED_SECONDS", 0)
        await until(lambda: _concern(host))
        assert await host.adapter.end_excessive_sessions(names, NEVER) == []
        assert await host.adapter.end_excessive_sessions([tenant.name], now) == [], "one of them is somebody else's"
        assert len(await as_root(host, "XA RECOVER")) == 2
        if host.flavour == "mysql":
            ended = await host.adapter.end_excessive_sessions(names, now)
            assert ended == [SessionsEnded(tenant=name, reason="prepared_transaction") for name in sorted(names)]
        else:
            assert await host.adapter.end_excessive_sessions(names, now) == [], "nothing tells whose they are"
            await as_root(host, *[f"XA ROLLBACK '{name}'" for name in names])
        assert await as_root(host, "XA RECOVER") == []


async def test_whoever_takes_all_prepared_statements_is_ended(host: EngineHost) -> None:
    if kind_of(host) != "mysql":
        pytest.skip("PostgreSQL keeps them in each session's own memory")
    [(before,)] = await as_root(host, "SELECT @@global.max_prepared_stmt_count")
    await as_root(host, "SET GLOBAL max_prepared_stmt_count = 1000")
    try:
        async with tenants(host, 2) as [tenant, other], session_of(host, other) as modest:
            await modest.run("PREPARE one FROM 'SELECT 1'")
            async with session_of(host, tenant) as taking:
                for number in range(600):
                    await taking.run(f"PREPARE s{number} FROM 'SELECT 1'")
                ended = await host.adapter.end_excessive_sessions([tenant.name, other.name], NEVER)
                assert ended[0] == SessionsEnded(tenant=tenant.name, reason="prepared_statements")
                await until(lambda: _is_over(taking))
            assert await host.adapter.end_excessive_sessions([tenant.name, other.name], NEVER) == []
            assert await modest.run("EXECUTE one") == [(1,)]
    finally:
        await as_root(host, f"SET GLOBAL max_prepared_stmt_count = {before}")


async def test_a_session_that_holds_too_much_memory_is_ended(host: EngineHost) -> None:
    if kind_of(host) != "mysql":
        pytest.skip("PostgreSQL doesn't tell of another session's memory")
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("SET @t = REPEAT('x', 8000000)")
        assert await host.adapter.end_excessive_sessions([tenant.name], NEVER) == []
        ended = await _ended(host, tenant, SessionLimits(memory_bytes=4_000_000))
        assert ended == [SessionsEnded(tenant=tenant.name, reason="memory")]
        await until(lambda: _is_over(session))


async def test_a_session_that_holds_many_named_locks_is_ended(host: EngineHost) -> None:
    if host.flavour != "mysql":
        pytest.skip("only MySQL lets a session take many, and their memory isn't counted as the session's")
    async with (
        tenants(host, 2) as [tenant, other],
        session_of(host, tenant) as taking,
        session_of(host, other) as modest,
    ):
        for session, locks in ((taking, 4000), (modest, 20)):
            await session.run("SET cte_max_recursion_depth = 5000")
            numbers = f"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {locks})"
            await session.run(f"{numbers} SELECT SUM(GET_LOCK(CONCAT('{locks}-', i), 0)) FROM n")
        limits = SessionLimits(memory_bytes=2048 * 3999)
        ended = await host.adapter.end_excessive_sessions([tenant.name, other.name], limits)
        assert ended == [SessionsEnded(tenant=tenant.name, reason="memory")]
        await until(lambda: _is_over(taking))
        assert await modest.run("SELECT IS_USED_LOCK('20-1') = CONNECTION_ID()") == [(1,)]


async def test_what_is_used_up_is_reported(host: EngineHost) -> None:
    told = {one.name: one for one in await host.adapter.shared_resources()}
    expected = (
        {"transaction_ids", "multixact_ids", "locks", "oldest_snapshot_transactions"}
        if host.flavour == "postgres"
        else {"prepared_statements", "undo_history", "detached_transactions"}
    )
    assert set(told) == expected
    for one in told.values():
        assert one.used >= 0
        assert one.capacity is None or one.used < one.capacity
