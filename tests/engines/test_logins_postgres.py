"""Several logins of one owner on PostgreSQL: nothing that a login does gives it more, or stays in its way out."""

import asyncio
import contextlib
from pathlib import Path

import asyncpg
import msgspec
import pytest

from app.engines.base import Access, EngineLimits, Login, Tenant
from app.engines.postgres import PostgresAdapter
from tests import servers
from tests.engines.accounts import accepted, logging_in_as, login_of, next_login, rotated, session_as, user_of
from tests.engines.harness import EngineHost, Session, as_root, refusal, session_of, tenants
from tests.engines.postgres_host import PostgresHost
from tests.engines.test_isolation_postgres import REFUSED
from tests.servers import RunningServer
from tests.support.waiting import until

DENIED = "42501"

pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")

TRICKS = (
    ("SET ROLE NONE",),
    ("RESET ROLE", "SET ROLE NONE"),
    ("SET SESSION AUTHORIZATION {login}",),
    ("SET SESSION AUTHORIZATION DEFAULT", "SET ROLE {login}"),
    ("RESET SESSION AUTHORIZATION", "SELECT set_config('role', 'none', false)"),
    ("RESET ALL", "SET LOCAL ROLE NONE"),
)
MAKES = (
    "CREATE TABLE {at}.t{n} (n serial PRIMARY KEY)",
    "CREATE TABLE {at}.u{n} AS SELECT 1 AS n",
    "SELECT 1 AS n INTO {at}.v{n}",
    "CREATE VIEW {at}.w{n} AS SELECT 1",
    "CREATE MATERIALIZED VIEW {at}.m{n} AS SELECT 1 AS n",
    "CREATE SEQUENCE {at}.s{n}",
    "CREATE SCHEMA s{n} CREATE TABLE inner_t (n int)",
    "CREATE TYPE {at}.e{n} AS ENUM ('a')",
    "CREATE DOMAIN {at}.d{n} AS int",
    "CREATE FUNCTION {at}.f{n}() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE AGGREGATE {at}.a{n}(int) (SFUNC = int4pl, STYPE = int)",
    "CREATE PUBLICATION p{n}",
    "CREATE COLLATION {at}.c{n} (provider = libc, locale = 'C')",
    "CREATE TEXT SEARCH CONFIGURATION {at}.ts{n} (COPY = pg_catalog.simple)",
    "CREATE OPERATOR {at}.=#= (FUNCTION = int4pl, LEFTARG = int, RIGHTARG = int)",
    "CREATE STATISTICS {at}.st{n} ON n, (n + 1) FROM {at}.t{n}",
    "DO $$ BEGIN CREATE TABLE {at}.x{n} (n int); END $$",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
)
_OWNERS = """
SELECT DISTINCT refobjid::regrole::text FROM pg_shdepend
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND deptype = 'o'
"""
_GRANTS = "SELECT datacl::text FROM pg_database WHERE datname = current_database()"


async def owners(host: EngineHost, tenant: Tenant) -> set[str]:
    return {owner for (owner,) in await host.as_root_in(tenant, _OWNERS)} - {host.administrator.user}


async def unguarded(host: EngineHost, tenant: Tenant) -> None:
    """As a database is that was made before there was a template, or on a host without one."""
    for statement in (
        "ALTER EXTENSION plpgsql DROP EVENT TRIGGER headwater_guard",
        "DROP EVENT TRIGGER headwater_guard",
    ):
        await host.as_root_in(tenant, statement)


async def run_all(session: Session, *statements: str) -> None:
    for statement in statements:
        await session.run(statement)


async def test_whatever_a_login_makes_itself_everything_has_one_owner(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        new = next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        async with session_of(host, tenant) as session:
            await session.run("GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC")
        for n, trick in enumerate(TRICKS):
            async with session_as(host, tenant, new) as session:
                await session.run(f"CREATE SCHEMA at{n}")
                await session.run(f"GRANT ALL ON SCHEMA at{n} TO PUBLIC")
                for statement in MAKES:
                    for step in trick:
                        await session.run(step.format(login=new.name))
                    await session.run(statement.format(at=f"at{n}", n=n))
        assert await owners(host, tenant) == {tenant.name}


async def test_a_login_that_took_the_role_from_itself_gets_it_again(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        moved = await rotated(host, tenant)
        login = login_of(moved)
        async with session_as(host, moved, login) as session:
            await run_all(
                session,
                "SET ROLE NONE",
                "ALTER ROLE CURRENT_USER RESET role",
                f'ALTER ROLE CURRENT_USER IN DATABASE "{tenant.name}" SET role = none',
                "ALTER ROLE CURRENT_USER SET local_preload_libraries = 'nowhere'",
            )
        # The service's own sessions are the tenant's all the same.
        async with host.adapter.script_session(moved, 10) as script:
            await script.begin()
            await script.run("CREATE TABLE made (n int)", 10)
            await script.commit()
        await host.adapter.restore_credentials(moved)
        async with session_as(host, moved, login) as session:
            assert await session.run("SELECT current_user::text") == [(tenant.name,)]
        assert await owners(host, tenant) == {tenant.name}


HOSTILE = (
    "SET ROLE NONE",
    *[
        statement
        for statement in MAKES
        if not statement.startswith(("CREATE SCHEMA", "DO"))  # those come below
    ],
    "CREATE SCHEMA own CREATE TABLE inner_t (n int) CREATE VIEW inner_v AS SELECT 1",
    "CREATE FUNCTION own.f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "CREATE PROCEDURE own.p() LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION citext SCHEMA own",
    "SELECT lo_create(4711)",
    "SELECT lo_create(0) FROM generate_series(1, 450)",
    "GRANT SELECT ON LARGE OBJECT 4711 TO PUBLIC",
    "CREATE TABLE own.parts (n int) PARTITION BY RANGE (n)",
    "CREATE TABLE own.low PARTITION OF own.parts FOR VALUES FROM (0) TO (9)",
    "CREATE TABLE own.guarded (n int)",
    "ALTER TABLE own.guarded ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON own.guarded TO {login}",
    "CREATE POLICY shared ON own.guarded TO {login}, {name}",
    "CREATE RULE mine AS ON INSERT TO own.guarded DO ALSO SELECT 1",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA own GRANT ALL ON TABLES TO PUBLIC",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {name} GRANT ALL ON TABLES TO {login}",
    "GRANT ALL ON own.guarded TO {name} WITH GRANT OPTION",
    "CREATE TEMPORARY TABLE passing (n int)",
    # The tenant takes its own rights from itself: what the login has there can't be given to it as it is.
    "SET ROLE {name}",
    "CREATE SCHEMA closed",
    "GRANT ALL ON SCHEMA closed TO {login}",
    "SET ROLE NONE",
    "CREATE FUNCTION closed.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TYPE closed.e AS ENUM ('a')",
    "SET ROLE {name}",
    "REVOKE ALL ON SCHEMA closed FROM {name}, {login}",
    "CREATE TABLE public.ours (n int)",
    "GRANT ALL ON public.ours TO {login} WITH GRANT OPTION",
    "GRANT SELECT (n) ON public.ours TO {login}",
    "GRANT ALL ON SCHEMA public TO {login} WITH GRANT OPTION",
    "GRANT ALL ON ALL FUNCTIONS IN SCHEMA public TO {login}",
    "CREATE DOMAIN public.number AS int",
    "GRANT USAGE ON TYPE public.number TO {login}",
)
"""What a login leaves behind where nothing keeps it from owning things, and the tenant helps it."""


@pytest.mark.parametrize("frozen", [False, True])
async def test_a_login_is_dropped_whatever_it_owns(host: EngineHost, frozen: bool) -> None:
    before = await host.catalog()
    async with tenants(host, 2) as [tenant, other]:
        rights = await host.as_root_in(tenant, _GRANTS)
        await unguarded(host, tenant)
        moved = await rotated(host, tenant)
        login, new = login_of(moved), next_login(host, tenant, 2)
        async with session_as(host, moved, login) as session:
            names = {"login": login.name, "name": tenant.name, "at": "public", "n": 0}
            for statement in HOSTILE:
                await session.run(statement.format(**names))
        assert login.name in await owners(host, tenant)
        if frozen:
            await host.adapter.freeze(moved)
        await host.adapter.add_credential(moved, new)
        await host.adapter.retire_credential(moved, new, login, end_sessions=True)
        assert await as_root(host, f"SELECT 1 FROM pg_roles WHERE rolname = '{login.name}'") == []
        assert await owners(host, tenant) == {tenant.name}
        latest = logging_in_as(tenant, new)
        if frozen:
            await host.adapter.thaw(latest)
        assert await host.as_root_in(tenant, _GRANTS) == rights, "the database itself lost nothing"
        async with session_as(host, latest, new) as session:
            assert (await session.run("SELECT count(*) FROM pg_largeobject_metadata"))[0][0] == 451
            await run_all(session, "DROP SCHEMA own CASCADE", "DROP SCHEMA closed CASCADE", "DROP TABLE public.t0")
        await host.adapter.verify_login(latest)
        await host.adapter.verify_login(other)
    assert await host.catalog() == before


async def test_a_user_is_removed_whoever_granted_it_something(host: EngineHost) -> None:
    """`DROP OWNED` leaves what somebody else than the owner granted, and then no role can be dropped."""
    async with tenants(host) as [tenant]:
        await unguarded(host, tenant)
        users = [user_of(tenant, Access.READ_ONLY, number) for number in range(1, 4)]
        async with session_of(host, tenant) as session:
            await run_all(session, "CREATE TABLE kept (n int)", "CREATE SCHEMA s", "SELECT lo_create(1)")
        for user in users:
            await host.adapter.put_user(tenant, user)
        first, second, third = (user.name for user in users)
        chain = ("TABLE kept", "SCHEMA s", "SCHEMA public")
        async with session_of(host, tenant) as session:
            for what in chain:
                await session.run(f"GRANT ALL ON {what} TO {first} WITH GRANT OPTION")
        for giver, taker in ((users[0], second), (users[1], third)):
            async with session_as(host, tenant, giver) as session:
                await session.run("SET default_transaction_read_only = off")
                for what in chain:
                    await session.run(f"GRANT ALL ON {what} TO {taker} WITH GRANT OPTION")
        for user in (users[1], users[2], users[0]):
            await host.adapter.remove_user(tenant, user.name)
        assert await as_root(host, f"SELECT rolname FROM pg_roles WHERE rolname LIKE '{tenant.name}\\_%'") == []
        async with session_of(host, tenant) as session:
            await session.run("INSERT INTO kept VALUES (1)")


async def test_what_a_removed_reader_made_gives_no_other_reader_more(host: EngineHost) -> None:
    """Where nothing keeps it from making things, because the tenant lets everybody, and there is no guard."""
    async with tenants(host) as [tenant]:
        await unguarded(host, tenant)
        first, second = user_of(tenant, Access.READ_ONLY, 1), user_of(tenant, Access.READ_ONLY, 2)
        async with session_of(host, tenant) as session:
            await run_all(
                session, "CREATE TABLE kept (n int)", "CREATE SCHEMA open", "GRANT ALL ON SCHEMA open TO PUBLIC"
            )
        for user in (first, second):
            await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, first) as session:
            await run_all(
                session,
                "SET default_transaction_read_only = off",
                "CREATE FUNCTION open.writes() RETURNS void LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT 1; END",
                "CREATE FUNCTION open.runs(sql text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER "
                "AS 'BEGIN EXECUTE sql; END'",
                "CREATE TABLE open.door (n int)",
                f"GRANT ALL ON open.door TO PUBLIC, {second.name}",
                f"GRANT ALL ON FUNCTION open.runs(text) TO {second.name}",
                "CREATE VIEW open.seen AS SELECT 1 AS n",
                "GRANT ALL ON open.seen TO PUBLIC",
            )
        await host.adapter.remove_user(tenant, first.name)
        async with session_as(host, tenant, second) as session:
            await session.run("SET default_transaction_read_only = off")
            for attack in (
                "SELECT open.runs('INSERT INTO public.kept VALUES (1)')",
                "SELECT open.writes()",
                "INSERT INTO open.door VALUES (1)",
                "SELECT * FROM open.seen",
            ):
                assert await refusal(session, attack) == DENIED, attack
        assert await owners(host, tenant) == {tenant.name}


async def test_prepared_transactions_are_in_nobodys_way(tmp_path: Path, engine_server: RunningServer) -> None:
    assert engine_server.flavour == "postgres"
    async with servers.postgres(tmp_path, max_prepared_transactions="9") as server:
        host = PostgresHost(server)
        await host.prepare()
        host.adapter = PostgresAdapter(host.administrator, session_settings={"lock_timeout": "1s"})
        async with tenants(host) as [tenant]:
            await unguarded(host, tenant)
            moved = await rotated(host, tenant)
            login, new = login_of(moved), next_login(host, tenant, 2)
            async with session_as(host, moved, login) as session:
                await run_all(session, "BEGIN", "CREATE TABLE ours (n int)", "PREPARE TRANSACTION 'of the tenant'")
                await run_all(session, "SET ROLE NONE", "CREATE TABLE mine (n int)", "BEGIN")
                await run_all(session, "CREATE TABLE hers (n int)", "PREPARE TRANSACTION 'of the login'")
                await run_all(session, f"GRANT SELECT ON mine TO {tenant.name}", f"SET ROLE {tenant.name}")
                await run_all(session, "BEGIN", "LOCK TABLE mine IN ACCESS SHARE MODE")
                await run_all(session, "PREPARE TRANSACTION 'in the way'")
            await host.adapter.add_credential(moved, new)
            await host.adapter.retire_credential(moved, new, login, end_sessions=True)
            assert await owners(host, tenant) == {tenant.name}
            assert await as_root(host, f"SELECT 1 FROM pg_roles WHERE rolname = '{login.name}'") == []
        await host.adapter.close()


ALSO_REFUSED = (
    "ALTER ROLE {login} CONNECTION LIMIT -1",
    "ALTER ROLE {login} VALID UNTIL 'infinity'",
    "ALTER ROLE {login} CREATEROLE",
    "ALTER ROLE {login} RESET temp_file_limit",
    "ALTER ROLE {name} LOGIN",
    "ALTER ROLE {name} CONNECTION LIMIT 9",
    "GRANT {name} TO {other}",
    "GRANT {name} TO {other_login}",
    "GRANT {login} TO {other}",
    "GRANT {login} TO {name}",
    "GRANT {other} TO {login}",
    "REVOKE {name} FROM {login}",
    "DROP ROLE {login}",
    "DROP ROLE {name}",
    "CREATE ROLE {name}_l9 LOGIN",
    "ALTER ROLE {login} RENAME TO mine",
    "COMMENT ON ROLE {login} IS 'mine'",
    "SET ROLE {other_login}",
    "SELECT pg_catalog.headwater_share_limit(false)",
    "ALTER EVENT TRIGGER headwater_admit DISABLE",
    "DROP EVENT TRIGGER headwater_admit",
    "DROP FUNCTION pg_catalog.headwater_admit() CASCADE",
    "SET event_triggers = off",
    "SELECT pg_terminate_backend({pid})",
)


async def test_a_login_has_no_more_than_its_tenant(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        new, theirs = next_login(host, tenant), next_login(host, other)
        for one, login in ((tenant, new), (other, theirs)):
            await host.adapter.add_credential(one, login)
            await host.adapter.log_in_as(one, login)
        async with session_as(host, other, theirs) as neighbour:
            [(pid,)] = await neighbour.run("SELECT pg_backend_pid()")
            names = {"name": tenant.name, "other": other.name, "pid": pid}
            names |= {"login": new.name, "other_login": theirs.name}
            for begin in ("SELECT 1", "SET ROLE NONE"):
                async with session_as(host, tenant, new) as session:
                    for statement in (*REFUSED, *ALSO_REFUSED):
                        await session.run(begin)
                        assert await refusal(session, statement.format(**names)), (begin, statement)
            assert await neighbour.run("SELECT 1") == [(1,)]


READ_ONLY_REFUSED = (
    *ALSO_REFUSED,
    "SET ROLE {name}",
    "SET SESSION AUTHORIZATION {name}",
    "ALTER ROLE {name} PASSWORD 'x'",
    "INSERT INTO kept VALUES (2)",
    "INSERT INTO window_on VALUES (2)",
    "UPDATE kept SET n = 2",
    "DELETE FROM kept",
    "TRUNCATE kept",
    "MERGE INTO kept k USING (SELECT 9 AS n) s ON k.n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.n)",
    "WITH w AS (INSERT INTO kept VALUES (2) RETURNING n) SELECT * FROM w",
    "EXPLAIN ANALYZE INSERT INTO kept VALUES (2)",
    "COPY kept FROM STDIN",
    "DO $$ BEGIN INSERT INTO kept VALUES (2); END $$",
    "SELECT n FROM kept FOR UPDATE",
    "LOCK TABLE kept IN EXCLUSIVE MODE",
    "SELECT nextval('numbers')",
    "SELECT setval('numbers', 9)",
    "SELECT writes()",
    "ALTER TABLE kept ADD COLUMN m int",
    "DROP TABLE kept",
    "CREATE INDEX ON kept (n)",
    "CREATE TRIGGER mine BEFORE INSERT ON kept EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE POLICY mine ON kept",
    "CREATE TABLE open.mine (n int)",
    "CREATE TABLE open.mine AS SELECT * FROM kept",
    "SELECT * INTO open.mine FROM kept",
    "CREATE VIEW open.mine AS SELECT 1",
    "CREATE FUNCTION open.mine() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "CREATE TYPE open.mine AS ENUM ('a')",
    "CREATE TEMPORARY TABLE mine (n int)",
    "CREATE SCHEMA mine",
    "CREATE EXTENSION citext",
    "CREATE PUBLICATION mine",
    "SELECT lo_creat(-1)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'mine')",
    "SELECT lo_put(4711, 0, 'mine')",
    "SELECT lo_unlink(4711)",
    "GRANT SELECT ON kept TO PUBLIC",
    "GRANT INSERT ON kept TO CURRENT_USER",
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {name} GRANT ALL ON TABLES TO PUBLIC",
    "REASSIGN OWNED BY {name} TO CURRENT_USER",
    "DROP OWNED BY {name}",
    "COMMENT ON TABLE kept IS 'mine'",
    "REFRESH MATERIALIZED VIEW counted",
    "SELECT pg_catalog.headwater_large_objects(true)",
    "SELECT pg_catalog.headwater_take_public()",
)


async def test_a_user_that_reads_can_do_nothing_else(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other]:
        async with session_of(host, tenant) as session:
            await run_all(
                session,
                "CREATE TABLE kept (n int)",
                "INSERT INTO kept VALUES (1)",
                "CREATE VIEW window_on AS SELECT n FROM kept",
                "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM kept",
                "CREATE SEQUENCE numbers",
                "CREATE SCHEMA inner_s CREATE TABLE kept (n int)",
                "CREATE SCHEMA open",
                "GRANT ALL ON SCHEMA open TO PUBLIC",
                "CREATE FUNCTION writes() RETURNS void LANGUAGE sql AS 'INSERT INTO public.kept VALUES (3)'",
                "SELECT lo_create(4711)",
            )
        user = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, user)
        theirs = next_login(host, other)
        await host.adapter.add_credential(other, theirs)
        moved = await rotated(host, tenant)
        async with session_as(host, moved, login_of(moved)) as session:
            await run_all(session, "CREATE SCHEMA later CREATE TABLE kept (n int)", "CREATE SEQUENCE later.numbers")
            await run_all(session, "SET ROLE NONE", "CREATE TABLE later.mine (n int)")
            await run_all(session, "SELECT lo_create(0)", "RESET ROLE", "SELECT lo_create(0)")
        assert await owners(host, tenant) >= {tenant.name}
        async with session_of(host, other) as neighbour, session_as(host, tenant, user) as session:
            [(pid,)] = await neighbour.run("SELECT pg_backend_pid()")
            names = {"name": tenant.name, "other": other.name, "pid": pid}
            names |= {"login": user.name, "other_login": theirs.name}
            for relation in ("kept", "window_on", "counted", "inner_s.kept", "later.kept", "later.mine"):
                await session.run(f"SELECT n FROM {relation}")
            for sequence in ("numbers", "later.numbers"):
                await session.run(f"SELECT last_value FROM {sequence}")
            for begin in ("SET default_transaction_read_only = off", "SET SESSION AUTHORIZATION DEFAULT"):
                for statement in (*REFUSED, *READ_ONLY_REFUSED):
                    await session.run(begin)
                    assert await refusal(session, statement.format(**names)), (begin, statement)
            assert await neighbour.run("SELECT 1") == [(1,)]
        async with session_of(host, other) as neighbour:
            assert await refusal(neighbour, f"SET ROLE {user.name}") == DENIED
        assert await host.as_root_in(tenant, "SELECT array_agg(n) FROM kept") == [([1],)]
        assert user.name not in await owners(host, tenant)


async def test_large_objects_are_everybodys_again_without_a_reader(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        reader, writer = user_of(tenant, Access.READ_ONLY, 1), user_of(tenant, Access.READ_WRITE, 2)
        clean = await host.rights(tenant)
        for user in (reader, writer):
            await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, writer) as session:
            await session.run("SELECT lo_create(0)")
        await host.adapter.freeze(tenant)
        async with session_as(host, tenant, writer) as session:
            assert await refusal(session, "SELECT lo_create(0)") == DENIED
        await host.adapter.thaw(tenant)
        async with session_of(host, tenant) as session:
            await session.run("SELECT lo_create(0)")
            assert await session.run(_CHANGED_FUNCTIONS) == [], "a dump would have it"
        for user in (reader, writer):
            await host.adapter.remove_user(tenant, user.name)
        assert {row for row in await host.rights(tenant) if row not in clean} == set()
        assert await host.as_root_in(tenant, _CHANGED_FUNCTIONS) == []


# As pg_dump asks.
_CHANGED_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
LEFT JOIN pg_init_privs i ON i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass AND i.objsubid = 0
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ '^lo'
  AND (p.proacl IS DISTINCT FROM i.initprivs) AND coalesce(p.proacl, i.initprivs) IS NOT NULL
"""


async def test_settings_of_the_tenants_go_with_it(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        odd = 'x;y, "Q""uoted" ,public'
        async with session_of(host, tenant) as session:
            await run_all(
                session,
                "CREATE SCHEMA app",
                'ALTER ROLE CURRENT_USER SET search_path = app, "$user", public',
                "ALTER ROLE CURRENT_USER SET statement_timeout = '77s'",
                "ALTER ROLE CURRENT_USER SET TimeZone = 'Asia/Kathmandu'",
                "ALTER ROLE CURRENT_USER SET local_preload_libraries = 'nowhere'",
                f"ALTER ROLE CURRENT_USER IN DATABASE \"{tenant.name}\" SET DateStyle = 'German'",
                "SELECT set_config('temp_tablespaces', '', false)",
            )
        shown = ("search_path", "statement_timeout", "TimeZone", "DateStyle", "temp_file_limit")
        first = next_login(host, tenant)
        await host.adapter.add_credential(tenant, first)
        expected = ['app, "$user", public', "77s", "Asia/Kathmandu", "German, DMY", "4GB"]
        async with session_as(host, tenant, first) as session:
            assert [(await session.run(f"SHOW {name}"))[0][0] for name in shown] == expected
            await session.run("SET ROLE NONE")
            await session.run(f"SELECT set_config('search_path', $v${odd}$v$, false)")
            await session.run("ALTER ROLE CURRENT_USER SET search_path FROM CURRENT")
        moved, second = logging_in_as(tenant, first), next_login(host, tenant, 2)
        await host.adapter.add_credential(moved, second)
        async with session_as(host, tenant, second) as session:
            assert (await session.run("SHOW search_path"))[0][0] == '"x;y", "Q""uoted", public'
            assert (await session.run("SHOW statement_timeout"))[0][0] == "77s"


async def test_settings_that_others_made_for_a_database_stay_behind(host: EngineHost) -> None:
    """They mean nothing there, and may be more than are taken along."""
    async with tenants(host, 2) as [tenant, other]:
        for one, setting in ((other, "work_mem = '4MB'"), (tenant, "DateStyle = 'German'")):
            async with session_of(host, one) as session:
                await session.run(f'ALTER ROLE CURRENT_USER IN DATABASE "{tenant.name}" SET {setting}')
        await host.adapter.clear(tenant)
        rows = await as_root(
            host,
            "SELECT r.rolname::text, s.setconfig FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole "
            f"JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = '{tenant.name}'",
        )
        assert {role: "DateStyle=German" in settings for role, settings in rows} == {tenant.name: True}


async def test_a_login_held_up_on_its_way_in_is_ended_with_its_credentials(
    host: EngineHost, engine_server: RunningServer
) -> None:
    """Its password is checked already, and it shows among no sessions yet."""
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        parked = asyncio.create_task(
            asyncpg.connect(
                host=engine_server.host,
                port=engine_server.port,
                user=old.name,
                password=old.password,
                database=tenant.name,
                server_settings={"post_auth_delay": "600"},
                timeout=600,
            )
        )
        await until(lambda: _is_locked(host, tenant))
        async with session_as(host, tenant, new) as session:
            await host.adapter.retire_credential(tenant, new, old, end_sessions=True)
            assert await session.run("SELECT 1") == [(1,)], "who logged in with the new one stays"
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
            await (await parked).fetchval("SELECT 1")


async def _is_locked(host: EngineHost, tenant: Tenant) -> bool:
    locked = f"SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.objid WHERE d.datname = '{tenant.name}'"
    return bool(await as_root(host, locked))


async def test_a_password_of_a_logins_own_is_found_and_replaced(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        moved = await rotated(host, tenant)
        login = login_of(moved)
        for change in ("PASSWORD 'another'", "PASSWORD NULL"):
            async with session_as(host, moved, login) as session:
                await run_all(session, "SET ROLE NONE", f"ALTER ROLE CURRENT_USER {change}")
            assert not await accepted(host, moved, login)
            await host.adapter.restore_credentials(moved)
            assert await accepted(host, moved, login)
        # What it changes as its tenant's role opens nothing: that one never logs in again.
        async with session_as(host, moved, login) as session:
            await session.run("ALTER ROLE CURRENT_USER PASSWORD 'opened'")
        assert await accepted(host, moved, login)
        opened = Login(name=tenant.name, password="opened", access=Access.READ_WRITE, connections=None)
        assert not await accepted(host, moved, opened)


async def test_losing_everything_it_owns_a_tenant_keeps_its_users(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        moved = await rotated(host, tenant)
        user = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, user)
        async with session_as(host, moved, login_of(moved)) as session:
            await session.run("DROP OWNED BY CURRENT_USER")
        await host.adapter.repair(moved)
        async with session_as(host, moved, login_of(moved)) as session:
            await session.run("CREATE TABLE kept (n int)")
        async with session_as(host, moved, user) as session:
            assert await session.run("SELECT n FROM kept") == []


async def test_what_the_tenant_hides_from_a_user_stays_hidden(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant, Access.READ_ONLY)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE hidden (n int)")
            await host.adapter.put_user(tenant, user)
            await session.run(f"REVOKE SELECT ON hidden FROM {user.name}")
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant)
        async with session_as(host, tenant, user) as session:
            assert await refusal(session, "SELECT n FROM hidden") == DENIED
        renewed = msgspec.structs.replace(user, password="another")
        await host.adapter.put_user(tenant, renewed, keep_rights=True)
        async with session_as(host, tenant, renewed) as session:
            assert await refusal(session, "SELECT n FROM hidden") == DENIED


async def test_the_clear_passwords_are_in_no_log(host: PostgresHost) -> None:
    async with tenants(host) as [tenant]:
        user, moved = user_of(tenant), await rotated(host, tenant)
        await host.adapter.put_user(tenant, user)
        log = host.log.read_text(errors="replace")
        assert f'CREATE ROLE "{user.name}"' in log, "every statement is logged"
        assert moved.password not in log
        assert user.password not in log


async def test_logins_are_counted_only_while_there_are_two(host: EngineHost) -> None:
    counting = "SELECT evtenabled <> 'D' FROM pg_event_trigger WHERE evtname = 'headwater_admit'"
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        assert await host.as_root_in(tenant, counting) == [(False,)]
        await host.adapter.add_credential(tenant, new)
        await host.adapter.log_in_as(tenant, new)
        assert await host.as_root_in(tenant, counting) == [(True,)]
        await host.adapter.retire_credential(tenant, new, old, end_sessions=True)
        await host.adapter.log_in_as(tenant, new)
        async with session_as(host, tenant, new) as session:
            await session.run("SELECT pg_catalog.headwater_share_limit(true)")
        assert await host.as_root_in(tenant, counting) == [(False,)]


async def test_without_the_guard_two_logins_have_no_more_than_the_database(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=3)) as [tenant]:
        await host.as_root_in(tenant, "ALTER EXTENSION plpgsql DROP FUNCTION headwater_share_limit(boolean)")
        await host.as_root_in(tenant, "DROP FUNCTION pg_catalog.headwater_share_limit(boolean)")
        new = next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        await host.adapter.log_in_as(tenant, new)
        async with contextlib.AsyncExitStack() as stack:
            for login in (new, login_of(tenant)) * 3:
                await stack.enter_async_context(session_as(host, tenant, login))
            for login in (new, login_of(tenant)):
                assert not await _fits(host, tenant, login)
        await host.adapter.retire_credential(tenant, new, login_of(tenant), end_sessions=True)
        await host.adapter.verify_login(logging_in_as(tenant, new))


async def _fits(host: EngineHost, tenant: Tenant, login: Login) -> bool:
    try:
        async with session_as(host, tenant, login):
            return True
    except Exception:
        return False
