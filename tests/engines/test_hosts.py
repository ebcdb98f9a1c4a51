"""What an adapter says of a host: fit or not, what it lacks, and whether anybody answers at all."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from app.contracts.base import Engine
from app.core import ids
from app.engines.base import AdminAddress, EngineAdapter, EngineError, HostUnavailable
from app.engines.mysql import connection as mysql_connection
from app.engines.postgres import PostgresAdapter
from app.engines.postgres import connections as postgres_connections
from app.engines.registry import open_adapter
from tests import servers
from tests.conftest import HOST_CONNECT_SECONDS
from tests.engines.harness import LIMITS, EngineHost, RefusedError, as_root, new_tenant, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer

SHORT = "Short-passw0rd"


@asynccontextmanager
async def opened(engine: Engine, address: AdminAddress) -> AsyncIterator[EngineAdapter]:
    adapter = open_adapter(engine, address)
    try:
        yield adapter
    finally:
        await adapter.close()


def address_of(host: EngineHost, user: str, password: str) -> AdminAddress:
    return msgspec.structs.replace(host.administrator, user=user, password=password, database=None)


@asynccontextmanager
async def lesser_account(host: EngineHost, grants: Sequence[str] = ()) -> AsyncIterator[EngineAdapter]:
    """An adapter whose administrator has these rights alone; `{name}` stands for it."""
    name = ids.engine_name()
    quoted = name if host.flavour == "postgres" else f"{name}@'%'"
    create = f"CREATE ROLE {name} LOGIN PASSWORD '{SHORT}'"
    if host.flavour == "postgres":
        grants = ["GRANT CONNECT ON DATABASE postgres TO {name}", *grants]
    else:
        create = f"CREATE USER {quoted} IDENTIFIED BY '{SHORT}'"
    await as_root(host, create, *[grant.format(name=quoted) for grant in grants])
    try:
        async with opened(host.adapter.engine, address_of(host, name, SHORT)) as adapter:
            yield adapter
    finally:
        if host.flavour == "postgres":
            await as_root(host, f"DROP OWNED BY {name}", f"DROP ROLE {name}")
        else:
            await as_root(host, f"DROP USER {quoted}")


async def test_a_fit_host(host: EngineHost) -> None:
    facts = await host.adapter.inspect_host()
    assert facts.flavour == host.flavour
    assert facts.version[0].isdigit()
    assert 900 < facts.max_connections <= 1000
    assert not any("tenant can connect" in sentence or "log in" in sentence for sentence in facts.shortcomings)
    assert await host.adapter.harden_host() == ()


async def test_an_administrator_who_may_not_provision_is_shown_what_is_missing(host: EngineHost) -> None:
    async with lesser_account(host) as adapter:
        with pytest.raises(EngineError, match=r"CREATE USER|CREATEROLE") as error:
            await adapter.inspect_host()
        assert not isinstance(error.value, HostUnavailable)


async def test_a_wrong_password_is_no_outage(host: EngineHost) -> None:
    address = address_of(host, host.administrator.user, SHORT)
    async with opened(host.adapter.engine, address) as adapter:
        with pytest.raises(EngineError) as error:
            await adapter.inspect_host()
        assert not isinstance(error.value, HostUnavailable)
        assert SHORT not in str(error.value)
    assert SHORT not in repr(address)


@pytest.mark.parametrize("engine", list(Engine))
async def test_nobody_listens(engine: Engine) -> None:
    address = AdminAddress(host="127.0.0.1", port=1, user="nobody", password=SHORT)
    async with opened(engine, address) as adapter:
        for call in (adapter.inspect_host(), adapter.create(new_tenant(), LIMITS), adapter.measure(["t"])):
            with pytest.raises(HostUnavailable):
                await call


@pytest.mark.parametrize("engine", list(Engine))
async def test_nobody_answers(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped still has its port accept connections."""
    assert max(HOST_CONNECT_SECONDS) <= 3
    for module in (mysql_connection, postgres_connections):
        monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = AdminAddress(host="127.0.0.1", port=silent.getsockname()[1], user="nobody", password=SHORT)
        # The drivers' own limit is a minute, or none.
        async with asyncio.timeout(30), opened(engine, address) as adapter:
            with pytest.raises(HostUnavailable):
                await adapter.inspect_host()


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_a_full_host_is_unavailable(host: EngineHost) -> None:
    grants = ["ALTER ROLE {name} CREATEDB CREATEROLE CONNECTION LIMIT 0"]
    async with lesser_account(host, grants) as adapter:
        with pytest.raises(HostUnavailable):
            await adapter.inspect_host()


@pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")
async def test_a_read_only_mysql_is_no_place_for_tenants(host: EngineHost) -> None:
    await as_root(host, "SET GLOBAL read_only = 1")
    try:
        with pytest.raises(EngineError, match="read-only"):
            await host.adapter.inspect_host()
    finally:
        await as_root(host, "SET GLOBAL read_only = 0")


async def test_what_stands_open_is_closed_or_reported(host: EngineHost, engine_server: RunningServer) -> None:
    """The lesser administrator tells of it, the full one closes it."""
    opening = "GRANT CONNECT ON DATABASE template1 TO PUBLIC"
    if host.flavour == "mariadb":
        opening = "GRANT SELECT ON `test`.* TO PUBLIC"
    elif host.flavour == "mysql":
        opening = "CREATE USER ''@'localhost'"
    await as_root(host, opening)
    assert (await host.adapter.inspect_host()).shortcomings
    told = await host.adapter.harden_host()
    full = address_of(host, engine_server.user, engine_server.password)
    async with opened(host.adapter.engine, full) as adapter:
        if host.flavour != "mysql":
            assert any("template1" in sentence or "test" in sentence for sentence in told)
            assert set(told) & set((await adapter.inspect_host()).shortcomings)
        assert await adapter.harden_host() == ()
    assert await host.adapter.harden_host() == ()


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_without_temp_file_limit_it_works_and_says_so(host: EngineHost) -> None:
    async with lesser_account(host, ["ALTER ROLE {name} CREATEDB CREATEROLE"]) as adapter:
        facts = await adapter.inspect_host()
        assert any("temp_file_limit" in sentence for sentence in facts.shortcomings)
        tenant = new_tenant()
        await adapter.create(tenant, LIMITS)
        await adapter.verify_login(tenant)
        await adapter.destroy(tenant)


@pytest.mark.parametrize("engine_server", ["mysql"], indirect=True, scope="session")
async def test_mariadb_bounds_what_lies_outside_a_tenants_database(host: EngineHost) -> None:
    if host.flavour != "mariadb":
        pytest.skip("this machine's server is MySQL")
    names = ("enforce_storage_engine", "innodb_temp_data_file_path")
    shortcomings = (await host.adapter.inspect_host()).shortcomings
    assert not any(name in sentence for name in names for sentence in shortcomings)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for engine in ("MyISAM", "Aria"):
            assert await refusal(session, f"CREATE TEMPORARY TABLE loose (n INT) ENGINE={engine}") is not None
        assert await refusal(session, "SET SESSION enforce_storage_engine = NULL") is not None
        await session.run("SET SESSION tmp_disk_table_size = 18446744073709551615")
        assert await session.run("SELECT @@tmp_disk_table_size") == [(2**30,)]
    await as_root(host, "SET GLOBAL enforce_storage_engine = NULL")
    try:
        shortcomings = (await host.adapter.inspect_host()).shortcomings
        assert any("enforce_storage_engine" in sentence for sentence in shortcomings)
    finally:
        await as_root(host, "SET GLOBAL enforce_storage_engine = InnoDB")


async def test_a_catalog_shows_nothing_of_another_installation(host: EngineHost) -> None:
    """Else what a service does on a shared server would be blamed on a test."""
    before, tenant, own = await host.catalog(), new_tenant(), new_tenant()
    other = open_adapter(host.adapter.engine, host.administrator, "f" * 32)
    try:
        await other.create(tenant, LIMITS)
        assert await host.catalog() == before
        await host.adapter.create(own, LIMITS)
        await other.revoke_access(tenant)
        assert {row[1] for row in await host.catalog() - before if row[0] in ("role", "account", "database")} == {
            own.name
        }
    finally:
        await host.adapter.destroy(own)
        await other.destroy(tenant)
        await other.close()


async def test_a_superuser_administers_postgres_too(postgres_server: RunningServer) -> None:
    host = PostgresHost(postgres_server, superuser=True)
    await host.prepare()
    facts = await host.adapter.inspect_host()
    assert any("superuser" in sentence for sentence in facts.shortcomings)
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        await host.adapter.verify_login(tenant)
        session = await host.login(tenant)
        await host.adapter.revoke_access(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
        await host.adapter.restore_access(tenant)
        await host.adapter.verify_login(tenant)
        with pytest.raises(RefusedError):
            await host.login(tenant, database="postgres")
    assert await host.catalog() == before
    await host.adapter.close()


async def test_an_old_postgres_is_refused_as_such(postgres_server: RunningServer) -> None:
    # What 15 answers to createrole_self_grant, 18 answers to this.
    host = PostgresHost(postgres_server)
    await host.prepare()
    adapter = PostgresAdapter(host.administrator, session_settings={"createrole_self_grant_of_2040": "set"})
    with pytest.raises(EngineError, match="16 or later"):
        await adapter.inspect_host()
    await adapter.close()


async def test_prepared_transactions_do_not_hold_up_destroy(tmp_path: Path) -> None:
    async with servers.postgres(tmp_path, max_prepared_transactions="5") as server:
        host = PostgresHost(server)
        await host.prepare()
        assert any("prepared" in sentence for sentence in (await host.adapter.inspect_host()).shortcomings)
        async with tenants(host) as [tenant], session_of(host, tenant) as session:
            for statement in ("BEGIN", "CREATE TABLE pets (n int)", "PREPARE TRANSACTION 'it''s \\mine'"):
                await session.run(statement)
        assert await host.adapter.list_tenants() == []
        await host.adapter.close()
