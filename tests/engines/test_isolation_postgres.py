"""What a tenant may not do on PostgreSQL, statement by statement, and what it still may."""

import asyncio

import asyncpg
import psutil
import pytest

from app.engines.base import EngineLimits, Tenant
from app.engines.postgres import PostgresAdapter
from tests.engines.harness import LIMITS, EngineHost, RefusedError, Session, as_root, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.servers import RunningServer
from tests.support.waiting import LIMIT_SECONDS, until

DENIED = "42501"
READ_ONLY_PARAMETER = "55P02"
NOT_INSTALLED = "0A000"

REFUSED = {
    # Secrets and files of the server
    "SELECT rolpassword FROM pg_authid": {DENIED},
    "SELECT passwd FROM pg_shadow": {DENIED},
    "SELECT pg_ls_dir('.')": {DENIED},
    "SELECT pg_read_file('PG_VERSION')": {DENIED},
    "SELECT pg_read_binary_file('PG_VERSION')": {DENIED},
    "SELECT pg_stat_file('PG_VERSION')": {DENIED},
    "SELECT pg_ls_logdir()": {DENIED},
    "SELECT lo_import('/etc/hostname')": {DENIED},
    "SELECT lo_export(lo_create(0), '/tmp/headwater')": {DENIED},
    "COPY pg_class TO '/tmp/headwater'": {DENIED},
    "COPY pg_class TO PROGRAM 'true'": {DENIED},
    "SHOW data_directory": {DENIED},
    "SELECT * FROM pg_hba_file_rules": {DENIED},
    # Other databases and roles
    "SELECT pg_database_size('{other}')": {DENIED},
    "SET ROLE {other}": {DENIED},
    "SET SESSION AUTHORIZATION {other}": {DENIED},
    "ALTER ROLE {other} PASSWORD 'x'": {DENIED},
    "DROP ROLE {other}": {DENIED},
    "DROP DATABASE {other}": {DENIED},
    "GRANT {other} TO {name}": {DENIED},
    "GRANT {name} TO {other}": {DENIED},
    "GRANT pg_read_all_data TO {name}": {DENIED},
    "SELECT pg_terminate_backend({pid})": {DENIED},
    "SELECT pg_cancel_backend({pid})": {DENIED},
    # Its own bounds
    "ALTER ROLE {name} CONNECTION LIMIT 1000": {DENIED},
    "ALTER ROLE {name} SUPERUSER": {DENIED},
    "ALTER ROLE {name} CREATEDB": {DENIED},
    "ALTER ROLE {name} RESET temp_file_limit": {DENIED},
    "ALTER DATABASE {name} CONNECTION LIMIT 1000": {DENIED},
    "ALTER DATABASE {name} SET work_mem = '1GB'": {DENIED},
    "ALTER DATABASE {name} OWNER TO {name}": {DENIED},
    "ALTER DATABASE {name} RENAME TO mine": {DENIED, "55006"},
    "DROP DATABASE {name}": {DENIED, "55006"},
    "COMMENT ON DATABASE {name} IS 'mine'": {DENIED},
    "COMMENT ON ROLE {name} IS 'mine'": {DENIED},
    "SET temp_file_limit = '-1'": {DENIED},
    # The server
    "CREATE ROLE mine": {DENIED},
    "CREATE DATABASE mine": {DENIED},
    "CREATE TABLESPACE mine LOCATION '/tmp'": {DENIED},
    "CREATE SUBSCRIPTION mine CONNECTION 'host=127.0.0.1' PUBLICATION p WITH (connect = false)": {DENIED},
    "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')": {DENIED, "55000"},
    "CREATE EVENT TRIGGER mine ON ddl_command_start EXECUTE FUNCTION suppress_redundant_updates_trigger()": {DENIED},
    "CREATE EXTENSION dblink": {DENIED, NOT_INSTALLED},
    "CREATE EXTENSION postgres_fdw": {DENIED, NOT_INSTALLED},
    "CREATE EXTENSION file_fdw": {DENIED, NOT_INSTALLED},
    "CREATE FOREIGN DATA WRAPPER mine": {DENIED},
    "CREATE FUNCTION mine() RETURNS int LANGUAGE c AS 'libc', 'getpid'": {DENIED},
    "CREATE LANGUAGE plpython3u": {DENIED, NOT_INSTALLED, "42601"},
    "SET session_replication_role = replica": {DENIED},
    "SET log_statement = 'none'": {DENIED},
    "ALTER SYSTEM SET work_mem = '1GB'": {DENIED},
    "SELECT pg_reload_conf()": {DENIED},
    "SELECT pg_switch_wal()": {DENIED},
    "CHECKPOINT": {DENIED},
}


pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")


async def test_every_way_out_is_refused(host: EngineHost) -> None:
    async with (
        tenants(host, 2) as [tenant, other],
        session_of(host, tenant) as session,
        session_of(host, other) as others,
    ):
        [(pid,)] = await others.run("SELECT pg_backend_pid()")
        names = {"name": tenant.name, "other": other.name, "pid": pid}
        wrong = {}
        for statement, codes in REFUSED.items():
            code = await refusal(session, statement.format(**names))
            if code not in codes:
                wrong[statement] = code
        assert wrong == {}
        assert await others.run("SELECT 1") == [(1,)]


async def test_other_databases_let_nobody_else_in(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        for database in (other.name, "postgres", "template1", "template0"):
            with pytest.raises(RefusedError) as refused:
                await host.login(tenant, database=database)
            assert refused.value.code in (DENIED, "55000"), database


async def test_a_tenant_can_not_let_others_in(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other], session_of(host, tenant) as session:
        await session.run(f"GRANT CONNECT ON DATABASE {tenant.name} TO PUBLIC")  # a warning, without effect
        await session.run(f"GRANT CONNECT ON DATABASE {tenant.name} TO {other.name}")
        with pytest.raises(RefusedError) as refused:
            await host.login(other, database=tenant.name)
        assert refused.value.code == DENIED


async def test_what_others_run_is_hidden(host: EngineHost) -> None:
    async with (
        tenants(host, 2) as [tenant, other],
        session_of(host, tenant) as session,
        session_of(host, other) as them,
    ):
        await them.run("SELECT 'a secret'")
        rows = await session.run(
            f"SELECT query, client_addr, application_name FROM pg_stat_activity WHERE usename = '{other.name}'"
        )
        assert rows
        assert {(query, address) for query, address, _ in rows} == {("<insufficient privilege>", None)}
        mine = await session.run(
            "SELECT DISTINCT application_name FROM pg_stat_activity "
            f"WHERE usename = '{host.administrator.user}' AND application_name <> ''"
        )
        assert mine in ([], [("headwater",)])


async def test_a_tenant_who_holds_our_lock_is_revoked_all_the_same(host: EngineHost) -> None:
    """On a host that can't be hardened, every tenant reaches the database that the lock lives in."""
    await as_root(host, "GRANT CONNECT ON DATABASE postgres TO PUBLIC")
    adapter = PostgresAdapter(host.administrator, session_settings={"lock_timeout": "0.5s"})
    async with tenants(host) as [tenant]:
        session = await host.login(tenant, database="postgres")
        await session.run(f"SELECT pg_advisory_lock(hashtextextended('headwater {tenant.name}', 0))")
        await adapter.revoke_access(tenant)
        with pytest.raises(ConnectionError):
            await session.run("SELECT 1")
    await adapter.close()
    await as_root(host, "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")


async def test_a_login_under_way_is_ended_too(host: EngineHost, engine_server: RunningServer) -> None:
    """Its access is checked already, and it shows among no sessions yet."""
    async with tenants(host) as [tenant]:
        login = asyncio.create_task(
            asyncpg.connect(
                host=engine_server.host,
                port=engine_server.port,
                user=tenant.name,
                password=tenant.password,
                database=tenant.name,
                server_settings={"post_auth_delay": "600"},
                timeout=600,
            )
        )
        await until(lambda: _is_let_in(tenant))
        async with asyncio.timeout(LIMIT_SECONDS):
            await host.adapter.revoke_access(tenant)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
            await (await login).fetchval("SELECT 1")


def _is_let_in(tenant: Tenant) -> bool:
    """The server's process for a login says in its title what it is at."""
    titles = (" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
    return any(title.startswith(f"postgres: {tenant.name}") and "startup" in title for title in titles)


async def test_a_removal_that_died_in_drop_database_is_finished(host: EngineHost) -> None:
    """It leaves a database that refuses everything but another drop."""
    before = await host.catalog()
    for call in ("destroy", "create"):
        async with tenants(host) as [tenant]:
            await as_root(host, f"UPDATE pg_database SET datconnlimit = -2 WHERE datname = '{tenant.name}'")
            await host.adapter.revoke_access(tenant)
            if call == "create":
                await as_root(host, f"ALTER ROLE {tenant.name} LOGIN")
                await host.adapter.create(tenant, LIMITS)
                await host.adapter.verify_login(tenant)
    assert await host.catalog() == before


async def test_the_tenant_is_at_home(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await _work(session)
        [(owner, limit)] = await as_root(
            host,
            f"SELECT pg_get_userbyid(datdba), datconnlimit FROM pg_database WHERE datname = '{tenant.name}'",
        )
        assert owner == host.administrator.user
        assert limit > EngineLimits(connections=5).connections, "room for the service itself"
        assert await session.run("SHOW temp_file_limit") == [("4GB",)]
        assert await session.run("SHOW server_encoding") == [("UTF8",)]


async def _work(session: Session) -> None:
    for statement in (
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.orders (id bigserial PRIMARY KEY, note text)",
        "CREATE TEMPORARY TABLE scratch (n int)",
        "CREATE FUNCTION shop.one() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "CREATE TYPE mood AS ENUM ('good')",
        "CREATE MATERIALIZED VIEW many AS SELECT count(*) FROM shop.orders",
        "DROP SCHEMA shop CASCADE",
    ):
        await session.run(statement)


async def test_the_clear_password_is_in_no_log(host: PostgresHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.create(tenant, EngineLimits(connections=2))
        await host.adapter.verify_login(tenant)
        log = host.log.read_text(errors="replace")
        assert f'CREATE ROLE "{tenant.name}"' in log, "every statement is logged"
        assert tenant.password not in log
