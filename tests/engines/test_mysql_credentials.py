"""Credentials on MySQL and MariaDB: two passwords of one account, and further accounts with all that they define."""

import msgspec
import pytest

from app.engines.base import (
    Access,
    CredentialsRefused,
    EngineError,
    EngineLimits,
    Login,
    LoginRefused,
    Tenant,
    TenantFull,
)
from app.engines.mysql import MySQLAdapter
from app.engines.mysql.users import MAX_ACCOUNTS
from tests.engines.accounts import accepted, login_of, next_login, session_as, user_of
from tests.engines.harness import EngineHost, RefusedError, as_root, new_tenant, refusal, session_of, tenants
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

DEFINED = (
    "CREATE VIEW defined AS SELECT n FROM kept",
    "CREATE TRIGGER copying AFTER INSERT ON kept FOR EACH ROW INSERT INTO copied VALUES (NEW.n)",
    "CREATE PROCEDURE adding() INSERT INTO kept VALUES (77)",
    "CREATE FUNCTION counting() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM kept)",
)


async def accounts(host: EngineHost, tenant: Tenant) -> set[str]:
    rows = await as_root(host, "SELECT user FROM mysql.user")
    return {user for (user,) in rows if user.startswith(tenant.name)}


async def test_an_overlap_can_be_begun_from_whatever_the_account_has(host: EngineHost) -> None:
    """The last of them is what a lost answer leaves."""
    changes = {
        "mysql": ("SET PASSWORD = 'another'", "SET PASSWORD = ''"),
        "mariadb": ("SET PASSWORD = PASSWORD('another')", "SET PASSWORD = ''"),
    }[host.flavour]
    async with tenants(host) as [tenant]:
        new = next_login(host, tenant)
        for change in (*changes, "SELECT 'an answer that was lost'"):
            async with session_of(host, tenant) as session:
                await session.run(change)
            for _ in range(3):
                await host.adapter.add_credential(tenant, new)
                assert await accepted(host, tenant, login_of(tenant))
                assert await accepted(host, tenant, new)
            for password in ("another", ""):
                other = Login(name=tenant.name, password=password, access=Access.READ_WRITE, connections=None)
                assert not await accepted(host, tenant, other), change


async def test_a_tenant_can_end_no_overlap_and_add_no_password(host: EngineHost) -> None:
    statements = {
        "mysql": (
            "ALTER USER USER() DISCARD OLD PASSWORD",
            "ALTER USER USER() IDENTIFIED BY 'third' RETAIN CURRENT PASSWORD",
            "SET PASSWORD = 'third' RETAIN CURRENT PASSWORD",
        ),
        "mariadb": (
            "ALTER USER CURRENT_USER() IDENTIFIED BY 'third'",
            "ALTER USER CURRENT_USER() IDENTIFIED VIA mysql_native_password USING PASSWORD('third')",
        ),
    }[host.flavour]
    async with tenants(host) as [tenant]:
        new = next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        async with session_of(host, tenant) as session:
            for statement in statements:
                assert await refusal(session, statement), statement
        assert await accepted(host, tenant, login_of(tenant))
        assert await accepted(host, tenant, new)


async def test_a_changed_password_does_not_survive_the_end_of_the_overlap(host: EngineHost) -> None:
    change = "SET PASSWORD = 'mine'" if host.flavour == "mysql" else "SET PASSWORD = PASSWORD('mine')"
    async with tenants(host) as [tenant]:
        old, new = login_of(tenant), next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        async with session_of(host, tenant) as session:
            await session.run(change)
        mine = Login(name=tenant.name, password="mine", access=Access.READ_WRITE, connections=None)
        assert await accepted(host, tenant, mine)
        for _ in range(2):
            await host.adapter.retire_credential(tenant, new, old, end_sessions=False)
            assert [await accepted(host, tenant, login) for login in (new, old, mine)] == [True, False, False]


async def test_an_account_that_is_closed_or_full_shows_which_password_is_right(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=1)) as [tenant]:
        wrong = next_login(host, tenant)
        async with session_of(host, tenant):
            with pytest.raises(TenantFull):
                await host.adapter.log_in_as(tenant, login_of(tenant))
            with pytest.raises(CredentialsRefused):
                await host.adapter.log_in_as(tenant, wrong)
        await host.adapter.revoke_access(tenant)
        with pytest.raises(LoginRefused) as refused:
            await host.adapter.log_in_as(tenant, login_of(tenant))
        assert not isinstance(refused.value, CredentialsRefused)
        with pytest.raises(CredentialsRefused):
            await host.adapter.log_in_as(tenant, wrong)


async def test_a_rotation_keeps_the_name_and_takes_only_what_can_be_written(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        for name, password in (("tother", "p"), (f"{tenant.name}_l1", "p"), (tenant.name, "a \\"), (tenant.name, "ü")):
            login = Login(name=name, password=password, access=Access.READ_WRITE, connections=None)
            with pytest.raises(ValueError, match=r"keep|ASCII|is named"):
                await host.adapter.add_credential(tenant, login)
            with pytest.raises(ValueError, match=r"keep|ASCII|is named"):
                await host.adapter.retire_credential(tenant, login, login_of(tenant), end_sessions=True)


async def test_a_users_name_belongs_to_its_tenant_and_fits(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        names = (tenant.name, f"{tenant.name}_", f"{tenant.name}_u'", f"{tenant.name}_u%", "tother_u1", "u1")
        for name in (*names, f"{tenant.name}_u{10**7}"):
            user = Login(name=name, password="p", access=Access.READ_ONLY, connections=1)
            with pytest.raises(ValueError, match=r"is named|of its own"):
                await host.adapter.put_user(tenant, user)
            with pytest.raises(ValueError, match=r"is named|of its own"):
                await host.adapter.remove_user(tenant, name)
        await host.adapter.put_user(tenant, user_of(tenant, number=10**7 - 1))


async def test_no_clear_password_is_in_a_log(host: EngineHost) -> None:
    await as_root(host, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON")
    try:
        async with tenants(host) as [tenant]:
            new, user = next_login(host, tenant), user_of(tenant)
            await host.adapter.add_credential(tenant, new)
            await host.adapter.retire_credential(tenant, new, login_of(tenant), end_sessions=False)
            await host.adapter.put_user(tenant, user)
            await host.adapter.put_user(tenant, user)
            await host.adapter.remove_user(tenant, user.name)
            rows = await as_root(host, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log")
            log = " ".join(str(argument) for (argument,) in rows)
            assert log.count(f"ALTER USER '{tenant.name}'") > 1
            assert f"CREATE USER '{user.name}'" in log
            for password in (tenant.password, new.password, user.password):
                assert password not in log
    finally:
        await as_root(host, "SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'FILE'")


async def test_what_a_user_defined_works_after_its_removal(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("CREATE TABLE copied (n INT)")
        async with session_as(host, tenant, user) as session:
            for statement in DEFINED:
                await session.run(statement)
        for _ in range(2):
            await host.adapter.remove_user(tenant, user.name)
        with pytest.raises(LoginRefused):
            await host.adapter.log_in_as(tenant, user)

        async with session_of(host, tenant) as session:
            await session.run("INSERT INTO kept VALUES (1)")
            await session.run("CALL adding()")
            assert await session.run("SELECT n FROM copied ORDER BY n") == [(1,), (77,)]
            assert await session.run("SELECT COUNT(*), counting() FROM defined") == [(2, 2)]

        # Neither a pause nor a repair opens it again, and a freeze covers it: a procedure runs with its rights.
        await host.adapter.freeze(tenant)
        async with session_of(host, tenant) as session:
            assert await refusal(session, "CALL adding()")
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant)
        await host.adapter.repair(tenant)
        [(shown,)] = await as_root(host, f"SHOW CREATE USER '{user.name}'@'%'")
        assert " ACCOUNT LOCK" in shown
        async with session_of(host, tenant) as session:
            await session.run("CALL adding()")
            assert await accounts(host, tenant) == {tenant.name, user.name}
            for statement in ("DROP VIEW defined", "DROP TRIGGER copying", "DROP PROCEDURE adding"):
                await session.run(statement)
            await host.adapter.remove_user(tenant, user.name)
            assert user.name in await accounts(host, tenant), "the function is still there"
            await session.run("DROP FUNCTION counting")
        # Any removal drops what is needed no more.
        await host.adapter.remove_user(tenant, f"{tenant.name}_u2")
        assert await accounts(host, tenant) == {tenant.name}


async def test_a_user_made_or_restored_while_frozen_writes_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        early, late = user_of(tenant), user_of(tenant, number=2)
        await host.adapter.put_user(tenant, early)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant, frozen=True)
        for user in (late, early):
            await host.adapter.put_user(tenant, user)
            async with session_as(host, tenant, user) as session:
                assert await refusal(session, "INSERT INTO kept VALUES (1)"), user
                assert await session.run("SELECT n FROM kept") == []
        await host.adapter.thaw(tenant)
        for user in (late, early):
            async with session_as(host, tenant, user) as session:
                await session.run("INSERT INTO kept VALUES (1)")


async def test_what_a_user_defined_is_copied_for_a_rehearsal(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        user = user_of(source)
        await host.adapter.put_user(source, user)
        async with session_as(host, source, user) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("CREATE TABLE copied (n INT)")
            for statement in DEFINED:
                await session.run(statement)
        # The server shows a routine's text to its definer alone.
        left = await host.adapter.copy_schema(source, target)
        assert sorted(sentence.split(":")[0] for sentence in left) == ["function counting", "procedure adding"]
        async with session_of(host, target) as session:
            await session.run("INSERT INTO kept VALUES (1)")
            assert await session.run("SELECT n FROM defined") == await session.run("SELECT n FROM copied") == [(1,)]


async def test_a_removed_user_of_the_same_name_begins_anew(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, user) as session:
            await session.run("CREATE VIEW defined AS SELECT 1 AS n")
        await host.adapter.remove_user(tenant, user.name)
        again = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, again)
        assert not await accepted(host, tenant, user)
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant)
        async with session_as(host, tenant, again) as session:
            assert await session.run("SELECT n FROM defined") == [(1,)]
            assert await refusal(session, "CREATE TABLE mine (n INT)")


async def test_kept_accounts_are_counted_and_all_gone_with_the_database(host: EngineHost) -> None:
    await host.adapter.list_tenants()
    before = await host.catalog()
    async with tenants(host) as [tenant]:
        kept = user_of(tenant)
        await host.adapter.put_user(tenant, kept)
        async with session_as(host, tenant, kept) as session:
            await session.run("CREATE VIEW defined AS SELECT 1 AS n")
        await host.adapter.remove_user(tenant, kept.name)
        extra = [f"'{tenant.name}_x{number}'@'%'" for number in range(MAX_ACCOUNTS - 2)]
        await as_root(host, f"CREATE USER {', '.join(extra)}")
        with pytest.raises(EngineError, match="the most"):
            await host.adapter.put_user(tenant, user_of(tenant, number=2))
        async with session_of(host, tenant) as session:
            await session.run("DROP VIEW defined")
        await host.adapter.put_user(tenant, user_of(tenant, number=2))
        assert kept.name not in await accounts(host, tenant)
    assert await host.catalog() == before


async def test_a_table_lock_does_not_hold_up_the_removal_of_a_user(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, user) as session, session_of(host, tenant) as owner:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("CREATE VIEW defined AS SELECT n FROM kept")
            await owner.run("LOCK TABLES kept WRITE, defined WRITE")
            await host.adapter.remove_user(tenant, user.name)
            with pytest.raises(ConnectionError):
                await session.run("SELECT 1")
        assert user.name in await accounts(host, tenant)


async def test_a_prepared_branch_of_a_removed_user_holds_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_of(host, tenant) as owner:
            await owner.run("CREATE TABLE kept (n INT)")
            async with session_as(host, tenant, user) as session:
                for statement in ("XA START 'b'", "INSERT INTO kept VALUES (1)", "XA END 'b'", "XA PREPARE 'b'"):
                    await session.run(statement)
                await host.adapter.remove_user(tenant, user.name)
            await owner.run("SET lock_wait_timeout = 5")
            await owner.run("DROP TABLE kept")


async def test_a_user_that_is_lowered_writes_nothing_more_in_an_open_session(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user = user_of(tenant)
        await host.adapter.put_user(tenant, user)
        async with session_as(host, tenant, user) as session:
            await session.run("CREATE TABLE kept (n INT)")
            lowered = Login(name=user.name, password=user.password, access=Access.READ_ONLY, connections=3)
            await host.adapter.put_user(tenant, lowered)
            with pytest.raises((ConnectionError, RefusedError)):
                await session.run("INSERT INTO kept VALUES (1)")
        for _ in range(2):
            await host.adapter.freeze(tenant)
            await host.adapter.thaw(tenant)
            async with session_as(host, tenant, lowered) as session:
                assert await refusal(session, "INSERT INTO kept VALUES (1)")


async def test_sessions_of_an_ended_password_go_on_unless_they_are_to_end(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        old, new, user = login_of(tenant), next_login(host, tenant), user_of(tenant)
        await host.adapter.put_user(tenant, user)
        await host.adapter.add_credential(tenant, new)
        async with session_of(host, tenant) as session, session_as(host, tenant, user) as users:
            await host.adapter.retire_credential(tenant, new, old, end_sessions=False)
            assert not await accepted(host, tenant, old)
            assert await session.run("SELECT 1") == [(1,)]

            async def each_has_one() -> bool:
                return await host.adapter.open_sessions(tenant) == {tenant.name: 1, user.name: 1}

            # A login that was refused is listed, too, until its connection is closed.
            await until(each_has_one)
            await host.adapter.retire_credential(tenant, new, old, end_sessions=True)
            with pytest.raises(ConnectionError):
                await session.run("SELECT 1")
            assert await users.run("SELECT 1") == [(1,)], "another account's"


async def test_nobody_has_users_who_is_not_there(host: EngineHost) -> None:
    nobody = new_tenant()
    assert await host.adapter.open_sessions(nobody) == {}
    with pytest.raises(EngineError):
        await host.adapter.remove_user(nobody, f"{nobody.name}_u1")
    with pytest.raises(EngineError):
        await host.adapter.put_user(nobody, user_of(nobody))
    with pytest.raises(EngineError):
        await host.adapter.add_credential(nobody, next_login(host, nobody))


# What an account that only reads is refused, in the database that it may read.
WRITES = (
    "INSERT INTO kept VALUES (2)",
    "REPLACE INTO kept VALUES (2)",
    "INSERT INTO seen VALUES (2)",
    "UPDATE kept SET n = 3",
    "UPDATE seen SET n = 3",
    "DELETE FROM kept",
    "TRUNCATE TABLE kept",
    "DROP TABLE kept",
    "DROP VIEW seen",
    "DROP PROCEDURE adding",
    "DROP FUNCTION counting",
    "DROP TRIGGER copying",
    "DROP DATABASE {name}",
    "ALTER DATABASE {name} CHARACTER SET latin1",
    "ALTER TABLE kept ADD COLUMN m INT",
    "RENAME TABLE kept TO mine",
    "CREATE INDEX mine ON kept (n)",
    "CREATE TABLE mine (n INT)",
    "CREATE TABLE mine AS SELECT * FROM kept",
    "CREATE TEMPORARY TABLE mine (n INT)",
    "CREATE VIEW mine AS SELECT 1",
    "CREATE OR REPLACE VIEW seen AS SELECT 1",
    "ALTER VIEW seen AS SELECT 1",
    "CREATE PROCEDURE mine() SELECT 1",
    "CREATE FUNCTION mine() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE TRIGGER mine BEFORE INSERT ON kept FOR EACH ROW SET NEW.n = 1",
    "CREATE EVENT mine ON SCHEDULE EVERY 1 SECOND DO SELECT 1",
    "CALL adding()",
    "SELECT counting()",
    "DO counting()",
    "PREPARE mine FROM 'INSERT INTO kept VALUES (2)'",
    "LOCK TABLES kept READ",
    "LOCK TABLES kept WRITE",
    "FLUSH TABLES kept WITH READ LOCK",
    "FLUSH TABLES kept FOR EXPORT",
    "ANALYZE TABLE kept",
    "OPTIMIZE TABLE kept",
    "REPAIR TABLE kept",
    "SELECT 1 INTO OUTFILE '/tmp/headwater-out'",
    "SELECT 1 INTO DUMPFILE '/tmp/headwater-out'",
    "LOAD DATA INFILE '/etc/hostname' INTO TABLE kept",
    "GRANT SELECT ON {name}.* TO {name}@'%'",
    "ALTER USER CURRENT_USER() WITH MAX_USER_CONNECTIONS 0",
    "ALTER USER {name}@'%' ACCOUNT LOCK",
    "DROP USER {name}@'%'",
    "SET PASSWORD FOR {name}@'%' = 'x'",
)
WRITES_OF = {
    "mysql": ("ALTER DATABASE {name} READ ONLY = 1", "SELECT * FROM kept FOR UPDATE", "LOCK INSTANCE FOR BACKUP"),
    "mariadb": (
        "SELECT NEXTVAL(numbers)",
        "SELECT NEXT VALUE FOR numbers",
        "SELECT SETVAL(numbers, 9)",
        "ALTER SEQUENCE numbers RESTART 9",
        "DROP SEQUENCE numbers",
        "CREATE SEQUENCE mine",
        "BACKUP LOCK kept",
        "BACKUP STAGE START",
        "INSERT INTO kept VALUES (2) RETURNING n",
    ),
}


async def test_who_only_reads_reads_all_and_writes_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        before, after = user_of(tenant, Access.READ_ONLY), user_of(tenant, Access.READ_ONLY, 2)
        writer = user_of(tenant, number=3)
        await host.adapter.put_user(tenant, before)
        await host.adapter.put_user(tenant, writer)
        async with session_of(host, tenant) as session:
            for statement in (
                "CREATE TABLE kept (n INT)",
                "CREATE TABLE copied (n INT)",
                "INSERT INTO kept VALUES (1)",
            ):
                await session.run(statement)
            if host.flavour == "mariadb":
                await session.run("CREATE SEQUENCE numbers")
        async with session_as(host, tenant, writer) as session:
            for statement in (*DEFINED, "CREATE VIEW seen AS SELECT n FROM kept"):
                await session.run(statement)
        await host.adapter.put_user(tenant, after)
        for reader in (before, after):
            async with session_as(host, tenant, reader) as session:
                assert await session.run("SELECT n FROM kept") == await session.run("SELECT n FROM seen") == [(1,)]
                assert await session.run("SELECT n FROM copied") == []
                assert await session.run("SHOW CREATE VIEW seen")
                if host.flavour == "mariadb":
                    assert await session.run("SELECT next_not_cached_value FROM numbers") == [(1,)]
                for statement in (*WRITES, *WRITES_OF[host.flavour]):
                    assert await refusal(session, statement.format(name=tenant.name)), statement
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT n FROM kept") == [(1,)]
            assert await session.run("SELECT n FROM copied") == []


async def test_a_view_that_writes_by_its_owners_function_is_the_owners(host: EngineHost) -> None:
    """The limit of what a right to read says: the owner may make a view that runs with its own rights."""
    async with tenants(host) as [tenant]:
        reader = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, reader)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("CREATE FUNCTION add_one() RETURNS INT BEGIN INSERT INTO kept VALUES (1); RETURN 1; END")
            await session.run("CREATE VIEW counted AS SELECT add_one()")
            await session.run("CREATE SQL SECURITY INVOKER VIEW refused AS SELECT add_one()")
        async with session_as(host, tenant, reader) as session:
            await session.run("SELECT * FROM counted")
            assert await refusal(session, "SELECT * FROM refused")
            assert await session.run("SELECT COUNT(*) FROM kept") == [(1,)]
        await host.adapter.freeze(tenant)
        async with session_as(host, tenant, reader) as session:
            assert await refusal(session, "SELECT * FROM counted")


async def limits_of(host: EngineHost, tenant: Tenant) -> dict[str, int]:
    rows = await as_root(host, "SELECT user, max_user_connections FROM mysql.user")
    return {user.removeprefix(tenant.name): limit for user, limit in rows if user.startswith(tenant.name)}


async def test_all_accounts_together_keep_the_limit(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=4)) as [tenant]:
        user = user_of(tenant, connections=1)
        await host.adapter.put_user(tenant, user)
        own = [await host.login(tenant) for _ in range(3)]
        async with session_as(host, tenant, user):
            for login in (user, login_of(tenant)):
                with pytest.raises(TenantFull):
                    await host.adapter.log_in_as(tenant, login)
        for session in own:
            await session.close()
        other = user_of(tenant, Access.READ_ONLY, 2, connections=2)
        await host.adapter.put_user(tenant, other)
        assert await limits_of(host, tenant) == {"": 1, "_u1": 1, "_u2": 2}
        await host.adapter.set_limits(tenant, EngineLimits(connections=9))
        assert await limits_of(host, tenant) == {"": 6, "_u1": 1, "_u2": 2}
        await host.adapter.put_user(tenant, msgspec.structs.replace(other, connections=5))
        assert await limits_of(host, tenant) == {"": 3, "_u1": 1, "_u2": 5}
        for _ in range(2):  # a late one changes nothing
            await host.adapter.create(tenant, EngineLimits(connections=8))
            assert await limits_of(host, tenant) == {"": 2, "_u1": 1, "_u2": 5}
        # No limit at all would be 0.
        await host.adapter.set_limits(tenant, EngineLimits(connections=2))
        assert await limits_of(host, tenant) == {"": 1, "_u1": 1, "_u2": 5}
        await host.adapter.set_limits(tenant, EngineLimits(connections=9))
        await host.adapter.remove_user(tenant, other.name)
        assert await limits_of(host, tenant) == {"": 8, "_u1": 1}


async def test_an_earlier_versions_tables_are_used(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=4)) as [tenant]:
        await as_root(host, "ALTER TABLE headwater.tenants DROP COLUMN connections", "DROP TABLE headwater.users")
        adapter = MySQLAdapter(host.administrator)
        try:
            await adapter.put_user(tenant, user_of(tenant, connections=1))
        finally:
            await adapter.close()
        assert await limits_of(host, tenant) == {"": 3, "_u1": 1}


async def test_what_was_made_before_there_were_users_shares_its_limit_too(host: EngineHost) -> None:
    async with tenants(host, limits=EngineLimits(connections=4)) as [tenant]:
        forget = f"UPDATE headwater.tenants SET connections = NULL WHERE name = '{tenant.name}'"
        await as_root(host, forget)
        await host.adapter.put_user(tenant, user_of(tenant, connections=1))
        assert await limits_of(host, tenant) == {"": 3, "_u1": 1}
        await as_root(host, forget)
        await host.adapter.revoke_access(tenant)
        await host.adapter.put_user(tenant, user_of(tenant, number=2, connections=1))
        await host.adapter.set_limits(tenant, EngineLimits(connections=4))
        assert await limits_of(host, tenant) == {"": 2, "_u1": 1, "_u2": 1}


async def test_a_password_that_a_user_changed_is_put_right(host: EngineHost) -> None:
    change = "SET PASSWORD = 'mine'" if host.flavour == "mysql" else "SET PASSWORD = PASSWORD('mine')"
    async with tenants(host) as [tenant]:
        for access in Access:
            user = user_of(tenant, access)
            await host.adapter.put_user(tenant, user)
            async with session_as(host, tenant, user) as session:
                await session.run(change)
            assert not await accepted(host, tenant, user)
            await host.adapter.put_user(tenant, user)
            assert await accepted(host, tenant, user)
