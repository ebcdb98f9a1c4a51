"""What a tenant may change on its own account, which no engine can refuse: none of it stays in the service's way."""

import pytest

from app.engines.base import CredentialsRefused, EngineAdapter, EngineError, Tenant
from tests.engines.harness import EngineHost, RefusedError, new_tenant, refusal, session_of, tenants

CHANGES = {
    "postgres": ("ALTER ROLE \"{name}\" PASSWORD 'another'", 'ALTER ROLE "{name}" PASSWORD NULL'),
    "mariadb": ("SET PASSWORD = PASSWORD('another')",),
    "mysql": ("SET PASSWORD = 'another'", "ALTER USER USER() IDENTIFIED BY 'another'"),
}
REFUSED = {
    "postgres": (
        "ALTER ROLE \"{name}\" VALID UNTIL '2000-01-01'",
        'ALTER ROLE "{name}" RENAME TO another',
        'ALTER ROLE "{name}" CONNECTION LIMIT -1',
        'ALTER ROLE "{name}" NOLOGIN',
        'ALTER ROLE "{name}" RESET temp_file_limit',
        'COMMENT ON ROLE "{name}" IS NULL',
        "ALTER SCHEMA public OWNER TO pg_database_owner",
        'ALTER DATABASE "{name}" SET default_transaction_read_only = on',
    ),
    "mariadb": (
        "ALTER USER CURRENT_USER() REQUIRE SSL",
        "ALTER USER CURRENT_USER() ACCOUNT LOCK",
        "ALTER USER CURRENT_USER() PASSWORD EXPIRE",
        "ALTER USER CURRENT_USER() WITH MAX_USER_CONNECTIONS 0",
        "ALTER USER CURRENT_USER() IDENTIFIED VIA unix_socket",
        "RENAME USER CURRENT_USER() TO another",
        "DROP USER CURRENT_USER()",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM CURRENT_USER()",
    ),
    "mysql": (
        "ALTER USER CURRENT_USER() REQUIRE SSL",
        "ALTER USER CURRENT_USER() ACCOUNT LOCK",
        "ALTER USER CURRENT_USER() PASSWORD EXPIRE",
        "ALTER USER CURRENT_USER() WITH MAX_USER_CONNECTIONS 0",
        "ALTER USER CURRENT_USER() IDENTIFIED BY 'another' RETAIN CURRENT PASSWORD",
        "ALTER USER CURRENT_USER() IDENTIFIED WITH caching_sha2_password BY 'another'",
        "RENAME USER CURRENT_USER() TO another",
        "DROP USER CURRENT_USER()",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM CURRENT_USER()",
        "SET PERSIST sql_mode = ''",
    ),
}
# Each would end or change a script, if the session took it from the role.
SETTINGS = (
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "statement_timeout = 1",
    "idle_session_timeout = 1",
    "exit_on_error = on",
    "transform_null_equals = on",
    "default_tablespace = 'pg_global'",
    "search_path = 'nowhere'",
    "TimeZone = 'Asia/Kathmandu'",
    "local_preload_libraries = 'nowhere'",
)


async def _is_refused(adapter: EngineAdapter, tenant: Tenant) -> bool:
    try:
        await adapter.log_in(tenant)
    except CredentialsRefused:
        return True
    return False


async def test_a_password_of_the_tenants_own_is_found_and_replaced(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        for change in CHANGES[host.flavour]:
            async with session_of(host, tenant) as session:
                await session.run(change.format(name=tenant.name))
            assert await _is_refused(host.adapter, tenant)
            await host.adapter.restore_credentials(tenant)
            assert not await _is_refused(host.adapter, tenant)
            await host.adapter.verify_login(tenant)


async def test_what_else_an_account_is_stays_ours(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for statement in REFUSED[host.flavour]:
            assert await refusal(session, statement.format(name=tenant.name)), statement
        assert not await _is_refused(host.adapter, tenant)


async def test_what_was_closed_stays_closed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_credentials(tenant)
        with pytest.raises(RefusedError):
            await host.login(tenant)
        with pytest.raises(EngineError):
            await host.adapter.restore_credentials(new_tenant())


async def test_an_open_change_of_the_password_does_not_hold_up_its_replacement(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("here a change of the password ends the transaction that it is in")
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("BEGIN")
        await session.run(f"ALTER ROLE \"{tenant.name}\" PASSWORD 'another'")
        await host.adapter.restore_credentials(tenant)
        assert not await _is_refused(host.adapter, tenant)


async def test_settings_of_the_role_stay_out_of_our_sessions(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("here an account has no settings")
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            for setting in SETTINGS:
                await session.run(f'ALTER ROLE "{tenant.name}" SET {setting}')
                await session.run(f'ALTER ROLE "{tenant.name}" IN DATABASE "{tenant.name}" SET {setting}')
        async with host.adapter.script_session(tenant, 10) as script:
            await script.begin()
            await script.run("CREATE TABLE public.made AS SELECT NULL = 1 AS equal, current_setting('TimeZone')", 10)
            await script.commit()
        rows = await host.as_root_in(tenant, "SELECT equal, current_setting <> 'Asia/Kathmandu' FROM made")
        assert rows == [(None, True)]
        await host.adapter.reclaim(tenant)
        # Nobody but a client that knows the cure can log in.
        assert await _is_refused(host.adapter, tenant)
        await host.adapter.restore_credentials(tenant)
        assert not await _is_refused(host.adapter, tenant)


async def test_a_database_that_its_tenant_made_read_only_can_be_frozen_and_removed(host: EngineHost) -> None:
    if host.flavour != "mysql":
        pytest.skip("only MySQL has databases that nobody can write")
    async with tenants(host) as [tenant]:
        read_only = f"ALTER DATABASE {tenant.name} READ ONLY = 1"
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INTEGER)")
            await session.run(read_only)
        await host.adapter.freeze(tenant)
        async with session_of(host, tenant) as session:
            await session.run("DELETE FROM kept")
            assert await refusal(session, read_only), "a frozen one can't do so again"
        await host.adapter.thaw(tenant)
        async with session_of(host, tenant) as session:
            await session.run(read_only)
        await host.adapter.destroy(tenant)
        assert tenant.name not in {one.name for one in await host.adapter.list_tenants()}
