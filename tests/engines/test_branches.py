"""Prepared XA branches, which outlive their session: the tenant's own go, everybody else's stay."""

import pytest

from app.engines.base import EngineError, Tenant
from app.engines.errors import StatementFailed, StatementUncertain
from app.engines.mysql import branches, connections, transactions
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.transactions import TransactionsNotListed
from tests.engines.harness import EngineHost, Session, as_root, session_of, tenants

SECONDS = 30.0
pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


@pytest.fixture(autouse=True)
async def quick_to_give_up(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 1)
    await host.adapter.close()


async def prepare(host: EngineHost, tenant: Tenant, xid: str, *, table: str = "t") -> Session:
    """A session with a prepared branch that holds the tenant's table."""
    session = await host.login(tenant)
    for statement in (
        f"CREATE TABLE IF NOT EXISTS {table} (n INT PRIMARY KEY)",
        f"XA START {xid}",
        f"INSERT INTO {table} VALUES (1)",
        f"XA END {xid}",
        f"XA PREPARE {xid}",
    ):
        await session.run(statement)
    return session


async def prepared(host: EngineHost) -> int:
    return len(await as_root(host, "XA RECOVER" if host.flavour == "mariadb" else "XA RECOVER CONVERT XID"))


async def test_a_branch_of_an_open_session_goes_with_it(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        session = await prepare(host, tenant, "'open','part',7")
        await host.adapter.revoke_access(tenant)
        assert await prepared(host) == 0
        await session.close()
        await host.adapter.destroy(tenant)


async def test_a_list_of_transactions_read_before_it_does_not_hide_it(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        session = await prepare(host, tenant, "'first'")
        await session.run("XA COMMIT 'first'")
        # The server keeps what it tells here for a tenth of a second.
        await as_root(host, "SELECT trx_id FROM information_schema.innodb_trx")
        for statement in ("XA START 'next'", "INSERT INTO t VALUES (2)", "XA END 'next'", "XA PREPARE 'next'"):
            await session.run(statement)
        await host.adapter.revoke_access(tenant)
        assert await prepared(host) == 0
        await session.close()
        await host.adapter.destroy(tenant)


async def test_the_servers_own_transactions_keep_none(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """InnoDB's, in which it writes the statistics of tables, are shown without a session, and are soon over."""
    looks: list[int] = []

    async def with_one_of_its_own(pool: MySQLConnections) -> list[tuple[int, int]]:
        found = await transactions.open_transactions(pool)
        looks.append(len(found))
        return [*found, (1, transactions.DETACHED)] if len(looks) <= 2 else found

    async with tenants(host) as [tenant]:
        session = await prepare(host, tenant, "'statistics'")
        monkeypatch.setattr(branches, "open_transactions", with_one_of_its_own)
        await host.adapter.revoke_access(tenant)
        assert await prepared(host) == 0
        await session.close()
        await host.adapter.destroy(tenant)


async def test_branches_of_sessions_long_gone_do_not_hold_up_destroy(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        for number, xid in enumerate(("'gone'", "X'00ff27','',3")):
            await (await prepare(host, tenant, xid, table=f"t{number}")).close()
        assert await prepared(host) == 2
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 0
        assert tenant.name not in {one.name for one in await host.adapter.list_tenants()}


async def test_another_tenants_branch_is_left_alone(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        theirs = await prepare(host, other, "'theirs'")
        mine = await prepare(host, tenant, "'mine'")
        await host.adapter.revoke_access(tenant)
        if host.flavour == "mysql":  # tells which session prepared what; MariaDB must wait until there is one
            await host.adapter.destroy(tenant)
            assert await prepared(host) == 1
        await theirs.run("XA COMMIT 'theirs'")
        assert await theirs.run("SELECT n FROM t") == [(1,)]
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 0
        await theirs.close()
        await mine.close()


async def test_an_id_that_looks_like_anothers_is_not_taken_for_it(host: EngineHost) -> None:
    """The neighbour's id is octets that aren't printable; the tenant's is the text as which the server shows them."""
    async with tenants(host, 2) as [tenant, other]:
        theirs = await prepare(host, other, "X'00ff27'")
        mine = await prepare(host, tenant, "'0x00FF27'")
        # It can't be told which is whose, and nothing is rolled back, or the tenant's own alone.
        await host.adapter.revoke_access(tenant)
        assert await theirs.run("XA COMMIT X'00ff27'") == []
        assert await theirs.run("SELECT n FROM t") == [(1,)]
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 0
        await theirs.close()
        await mine.close()


async def test_when_nobody_can_tell_nothing_is_rolled_back(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        await (await prepare(host, other, "'theirs'")).close()
        await (await prepare(host, tenant, "'mine'")).close()
        with pytest.raises(EngineError, match="XA RECOVER"):
            await host.adapter.destroy(tenant)
        assert await prepared(host) == 2
        async with session_of(host, other) as session:
            await session.run("XA COMMIT 'theirs'")
            assert await session.run("SELECT n FROM t") == [(1,)]
        # Now there is one, and its owner is known.
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 0


async def test_no_session_goes_on_because_transactions_are_not_listed(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant may have more prepared branches than the server lists."""

    async def unlisted(_connections: MySQLConnections) -> list[tuple[int, int]]:
        raise TransactionsNotListed("there are too many")

    async with tenants(host) as [tenant]:
        # Where the server shows which tenant's tables a branch without a session locks, that is looked up too.
        await (await prepare(host, tenant, "'kept'")).close()
        session = await host.login(tenant)
        with monkeypatch.context() as patch:
            patch.setattr(branches, "open_transactions", unlisted)
            await host.adapter.revoke_access(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
        await session.close()


# No statement but the call is seen. After another transaction, MySQL no longer shows that the session prepared it.
HIDDEN_BRANCH = """
CREATE PROCEDURE hidden () BEGIN
XA START 'hidden'; INSERT INTO t VALUES (7); XA END 'hidden'; XA PREPARE 'hidden';{after}
END
"""


@pytest.mark.parametrize("after", ["", " INSERT INTO t VALUES (8); SELECT COUNT(*) FROM t;"])
async def test_a_branch_that_a_script_prepares_is_noticed_and_holds_up_nothing(host: EngineHost, after: str) -> None:
    async with tenants(host) as [tenant]:
        async with host.adapter.script_session(tenant, SECONDS) as session:
            await session.begin()
            await session.run("CREATE TABLE t (n INT PRIMARY KEY)", SECONDS)
            await session.run(HIDDEN_BRANCH.format(after=after), SECONDS)
            with pytest.raises((StatementUncertain, StatementFailed)) as stopped:
                await session.run("CALL hidden()", SECONDS)
        # MariaDB refuses what comes after the branch within the procedure, and a session with a branch in it.
        assert isinstance(stopped.value, StatementUncertain) or host.flavour == "mariadb"
        if host.flavour == "mysql" and not after:
            assert await prepared(host) == 0
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 0


async def test_a_scripts_branch_is_told_from_a_neighbours(host: EngineHost) -> None:
    if host.flavour != "mysql":
        pytest.skip("the server doesn't tell here which session prepared a branch")
    async with tenants(host, 2) as [tenant, other]:
        await (await prepare(host, other, "'theirs'")).close()
        async with host.adapter.script_session(tenant, SECONDS) as session:
            await session.begin()
            await session.run("CREATE TABLE t (n INT PRIMARY KEY)", SECONDS)
            await session.run(HIDDEN_BRANCH.format(after=""), SECONDS)
            with pytest.raises(StatementUncertain, match="XA branch"):
                await session.run("CALL hidden()", SECONDS)
        await host.adapter.destroy(tenant)
        assert await prepared(host) == 1
        async with session_of(host, other) as session:
            await session.run("XA COMMIT 'theirs'")
