"""What a tenant may not do or see on MySQL and MariaDB, statement by statement, and what it still may."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engines.base import Access, Login, Tenant
from tests.engines.harness import LIMITS, EngineHost, RefusedError, as_root, refusal, session_of, tenants

NO_DATABASE = "1044"
NO_TABLE = "1142"
NO_PRIVILEGE = "1227"
NO_GRANT = "1410"
DENIED = {NO_DATABASE, NO_TABLE, NO_PRIVILEGE, NO_GRANT, "1045", "1698", "1370"}
UNKNOWN_HERE = {"1064", "1193", "1238", "1286", "1109", "1146"}
"""The other flavour's statement, variable or table."""

REFUSED = {
    # Other databases
    "SELECT * FROM `{other}`.secrets": DENIED,
    "INSERT INTO `{other}`.secrets VALUES (1)": DENIED,
    "CREATE TABLE `{other}`.mine (n INT)": DENIED,
    "DROP TABLE `{other}`.secrets": DENIED,
    "DROP DATABASE `{other}`": DENIED,
    "USE `{other}`": DENIED,
    "CREATE DATABASE mine": DENIED,
    "CREATE DATABASE `{name}_more`": DENIED,
    "CREATE DATABASE `{name}x`": DENIED,
    # The system's tables and ours
    "SELECT * FROM mysql.user": DENIED,
    "SELECT * FROM mysql.global_priv": DENIED | UNKNOWN_HERE,
    "SELECT * FROM mysql.db": DENIED,
    "SELECT * FROM headwater.tenants": DENIED,
    "SELECT * FROM performance_schema.accounts": DENIED,
    "SELECT * FROM performance_schema.events_statements_history": DENIED,
    "SELECT * FROM performance_schema.data_locks": DENIED | UNKNOWN_HERE,
    "SELECT * FROM information_schema.innodb_trx": DENIED,
    "SHOW ENGINE INNODB STATUS": DENIED,
    "SHOW GRANTS FOR `{other}`@`%`": DENIED,
    "SHOW CREATE USER `{other}`@`%`": DENIED,
    "SHOW MASTER STATUS": DENIED | UNKNOWN_HERE,
    # Files and other servers
    "SELECT 1 INTO OUTFILE '/tmp/headwater'": DENIED | {"1290"},
    "LOAD DATA INFILE '/etc/hostname' INTO TABLE kept": DENIED | {"1290"},
    "CREATE SERVER mine FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1')": DENIED,
    "INSTALL PLUGIN mine SONAME 'mine.so'": DENIED,
    "CREATE FUNCTION mine RETURNS INTEGER SONAME 'mine.so'": DENIED,
    # Accounts, and its own bounds
    "CREATE USER mine": DENIED,
    "CREATE ROLE mine": DENIED,
    "ALTER USER `{other}`@`%` IDENTIFIED BY 'x'": DENIED,
    "SET PASSWORD FOR `{other}`@`%` = 'x'": DENIED | {"1372"},
    "DROP USER `{other}`@`%`": DENIED,
    "ALTER USER `{name}`@`%` WITH MAX_USER_CONNECTIONS 1000": DENIED,
    "ALTER USER `{name}`@`%` ACCOUNT UNLOCK": DENIED,
    "GRANT SELECT ON `{name}`.* TO `{other}`@`%`": DENIED,
    "GRANT EVENT ON `{name}`.* TO `{name}`@`%`": DENIED,
    "GRANT ALL ON *.* TO `{name}`@`%`": DENIED,
    "CREATE DEFINER = `{other}`@`%` VIEW mine AS SELECT 1": DENIED,
    "CREATE EVENT mine ON SCHEDULE EVERY 1 SECOND DO SELECT 1": DENIED,
    # The server and other people's sessions
    "KILL {session}": {"1095"},
    "SET GLOBAL max_connections = 1": DENIED,
    "SET GLOBAL event_scheduler = ON": DENIED,
    "SET SESSION sql_log_bin = 0": DENIED,
    "SET PERSIST max_connections = 1": DENIED | UNKNOWN_HERE,
    "FLUSH PRIVILEGES": DENIED,
    "FLUSH TABLES WITH READ LOCK": DENIED,
    "RESET MASTER": DENIED | UNKNOWN_HERE,
    "SHUTDOWN": DENIED,
    "PURGE BINARY LOGS BEFORE NOW()": DENIED,
}


pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


@pytest.mark.parametrize("access", [None, *Access])
async def test_every_way_out_is_refused(host: EngineHost, access: Access | None) -> None:
    async with tenants(host, 2) as [tenant, other], session_of(host, other) as others:
        async with session_of(host, tenant) as owner:
            await owner.run("CREATE TABLE kept (n INT)")
        login = Login(name=tenant.name, password=tenant.password, access=Access.READ_WRITE, connections=None)
        if access is not None:
            login = Login(name=f"{tenant.name}_u1", password="User-passw0rd", access=access, connections=1)
            await host.adapter.put_user(tenant, login)
        session = await host.login(
            Tenant(name=login.name, password=login.password, marker=tenant.marker), database=tenant.name
        )
        await others.run("CREATE TABLE secrets (n INT)")
        [(number,)] = await others.run("SELECT CONNECTION_ID()")
        names = {"name": tenant.name, "other": other.name, "session": number}
        wrong = {}
        for statement, codes in REFUSED.items():
            code = await refusal(session, statement.format(**names))
            if code not in codes:
                wrong[statement] = code
        assert wrong == {}
        schemata = {name for (name,) in await session.run("SELECT schema_name FROM information_schema.schemata")}
        assert schemata <= {tenant.name, "information_schema", "performance_schema"}
        assert await session.run("SHOW DATABASES") == sorted((name,) for name in schemata)
        assert await session.run("SELECT DISTINCT user FROM information_schema.processlist") == [(login.name,)]
        await session.close()
        assert await others.run("SELECT * FROM secrets") == []


async def test_others_are_out_of_sight(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, other], session_of(host, tenant) as session, session_of(host, other):
        schemata = {name for (name,) in await session.run("SELECT schema_name FROM information_schema.schemata")}
        assert schemata <= {tenant.name, "information_schema", "performance_schema"}
        sessions = await session.run("SELECT DISTINCT user FROM information_schema.processlist")
        assert sessions == [(tenant.name,)]
        for table in ("tables", "columns", "schema_privileges", "routines", "views"):
            column = "table_schema" if table != "routines" else "routine_schema"
            rows = await session.run(f"SELECT 1 FROM information_schema.{table} WHERE {column} = '{other.name}'")
            assert rows == [], table
        assert await session.run("SELECT LOAD_FILE('/etc/hostname')") == [(None,)]


async def test_wildcards_of_grant_reach_nobody(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        rows = await as_root(host, f"SHOW GRANTS FOR `{tenant.name}`@`%`")
        lines = sorted(str(line) for (line,) in rows)
        assert len(lines) == 2
        assert f"ON `{tenant.name}`.* TO" in " ".join(lines)
        assert not any("EVENT" in line or "GRANT OPTION" in line for line in lines)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that the server's user may write in, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        path = Path(folder)
        path.chmod(0o777)
        yield path
        assert list(path.rglob("*")) == []


async def test_the_data_stays_in_the_data_folder(host: EngineHost, open_folder: Path) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        # Some refuse it, some only look away.
        await refusal(session, f"CREATE TABLE outside (n INT) DATA DIRECTORY = '{open_folder}'")


async def test_the_tenant_is_at_home(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for statement in (
            "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT) CHARACTER SET utf8mb4",
            "CREATE TEMPORARY TABLE scratch (n INT)",
            "CREATE VIEW notes AS SELECT note FROM orders",
            "CREATE PROCEDURE one() SELECT 1",
            "CREATE FUNCTION two() RETURNS INT DETERMINISTIC RETURN 2",
            "CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW SET NEW.note = UPPER(NEW.note)",
            "LOCK TABLES orders WRITE",
            "UNLOCK TABLES",
            "TRUNCATE orders",
        ):
            await session.run(statement)


async def test_one_account_with_one_host_pattern(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        assert await as_root(host, f"SELECT Host FROM mysql.user WHERE User = '{tenant.name}'") == [("%",)]
        with pytest.raises(RefusedError):
            await host.login(tenant, database="mysql")


async def test_the_clear_password_is_in_no_log(host: EngineHost) -> None:
    await as_root(host, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON")
    try:
        async with tenants(host) as [tenant]:
            await host.adapter.create(tenant, LIMITS)
            await host.adapter.verify_login(tenant)
            rows = await as_root(host, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log")
            log = " ".join(str(argument) for (argument,) in rows)
            assert f"CREATE USER '{tenant.name}'" in log, "every statement is logged"
            assert tenant.password not in log
    finally:
        await as_root(host, "SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'FILE'")
