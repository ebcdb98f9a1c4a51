"""Loading a dump into MySQL and MariaDB: with the tenant's rights alone, as text that somebody wrote."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engines.base import Access, LoginRefused, Tenant
from app.engines.dumping import DumpFormat, DumpRefused, LoadRefused
from app.engines.mysql.connection import LONGEST_IDLE_SECONDS
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.dumps import long_rows, relay, statements
from app.engines.mysql.dumps.dump import header
from app.engines.mysql.dumps.long_rows import LongRow
from tests.engines.accounts import accepted, login_of, next_login, session_as, user_of
from tests.engines.harness import EngineHost, RefusedError, as_root, refusal, session_of, tenants
from tests.engines.mysql_dumping import dumped, each, run_all, skip_without_tool
from tests.engines.test_mysql_dumps import EXACT
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


@pytest.fixture(autouse=True)
async def _tool(host: EngineHost) -> None:
    await skip_without_tool(host)


DEFINED = (
    "CREATE TABLE kept (n INT PRIMARY KEY, c VARCHAR(20))",
    "CREATE TABLE copied (n INT)",
    "CREATE VIEW z_last AS SELECT n FROM kept",
    "CREATE VIEW a_first AS SELECT n FROM z_last",
    "CREATE TRIGGER copying AFTER INSERT ON kept FOR EACH ROW INSERT INTO copied VALUES (NEW.n)",
    "CREATE PROCEDURE adding() BEGIN /* ;; ' */ INSERT INTO kept VALUES (77, ';;\n\\\\! touch x'); END",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "CREATE FUNCTION slash() RETURNS CHAR(9) DETERMINISTIC RETURN 'a\\'",
    "SET sql_mode = ''",
    "CREATE FUNCTION counting() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM kept)",
    "INSERT INTO kept VALUES (1, 'one;\n')",
)


NUMBERS = (
    """
    CREATE TABLE numbers (i BIGINT, u BIGINT UNSIGNED, z INT(5) ZEROFILL, y YEAR, x DECIMAL(65, 30), w DECIMAL(65, 0),
                          d DOUBLE, t TINYINT, s SET('1', '2', '4'), e ENUM('2', '1'))
    """,
    """
    INSERT INTO numbers VALUES
    (-9223372036854775808, 18446744073709551615, 42, 2024, -1.000000000000000000000000000001,
     99999999999999999999999999999999999999999999999999999999999999999, 1e300, -128, '2,4', '1'),
    (9223372036854775807, 0, 0, 0, 0, -18446744073709551616, -0e0, 127, '', '2'),
    (0, 9223372036854775808, 1, 1970, 0.5, 18446744073709551616, 4503599627370497.5, 0, '1', NULL)
    """,
)


def form_of(host: EngineHost) -> DumpFormat:
    return DumpFormat(flavour=host.flavour, server_version="", tool="", layout="sql")


async def hostile(tenant: Tenant, *lines: str) -> AsyncIterator[bytes]:
    for line in (f"-- headwater {tenant.name}", *lines):
        yield f"{line}\n".encode()


async def test_what_users_have_defined_belongs_to_the_tenant_that_loads_it(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        user = user_of(source, Access.READ_WRITE)
        await host.adapter.put_user(source, user)
        async with session_as(host, source, user) as session:
            for statement in DEFINED:
                await session.run(statement)
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, each(chunks))
        assert await host.adapter.contents(target) == told
        async with session_of(host, target) as session:
            await session.run("CALL adding()")
            assert await session.run("SELECT n FROM a_first ORDER BY n") == [(1,), (77,)]
            assert await session.run("SELECT COUNT(*), counting(), slash() FROM copied") == [(2, 2, "a\\")]
        again, _, _ = await dumped(host, target)
        assert source.name.encode() not in b"".join(again)


async def test_defaults_of_the_database_are_carried_and_cleared(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, "ALTER DATABASE CHARACTER SET latin2 COLLATE latin2_bin", "CREATE TABLE t (c TEXT)")
        chunks, form, _ = await dumped(host, source)
        await host.adapter.load(target, form, each(chunks))
        asked = "SELECT @@collation_database"
        async with session_of(host, target) as session:
            assert await session.run(asked) == [("latin2_bin",)]
        catalog = await host.catalog()
        await host.adapter.clear(target)
        await host.adapter.clear(target)
        async with session_of(host, target) as session:
            assert await session.run("SHOW TABLES") == []
            [(cleared,)] = await session.run(asked)
        assert cleared.startswith("utf8mb4")
        assert catalog - await host.catalog() == {("table", target.name, "t")}
        await host.adapter.load(target, form, each(chunks))


async def test_the_comment_on_the_database_is_carried(host: EngineHost) -> None:
    """Whatever a backslash means in the mode that the server gives sessions."""
    if host.flavour != "mariadb":
        pytest.skip("MySQL has no comments on databases")
    asked = "SELECT schema_comment FROM information_schema.schemata WHERE schema_name = DATABASE()"
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, r"ALTER DATABASE COMMENT 'it''s ours; -- \' \\'", "CREATE TABLE t (c TEXT)")
        chunks, form, _ = await dumped(host, source)
        await host.adapter.load(target, form, each(chunks))
        async with session_of(host, target) as session:
            assert await session.run(asked) == [("it's ours; -- ' \\",)]
        _, *altered = header(target.name, ("utf8mb4", "utf8mb4_bin"), "\\'").decode().splitlines()
        mode = "SET sql_mode = 'NO_BACKSLASH_ESCAPES';"
        await host.adapter.load(target, form_of(host), hostile(target, mode, *altered))
        async with session_of(host, target) as session:
            assert await session.run(asked) == [("\\'",)]


async def test_a_revoked_tenant_is_loaded_and_stays_closed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *DEFINED)
        chunks, form, told = await dumped(host, tenant)
        new = next_login(host, tenant)
        await host.adapter.add_credential(tenant, new)
        await host.adapter.revoke_access(tenant)
        refused = []

        async def looking() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk
                try:
                    await host.adapter.log_in(tenant)
                except LoginRefused:
                    refused.append(chunk)

        await host.adapter.clear(tenant)
        await host.adapter.load(tenant, form, looking())
        assert refused == chunks
        assert await host.adapter.contents(tenant) == told
        for login in (login_of(tenant), new):
            assert not await accepted(host, tenant, login)
        await until(lambda: _has_no_session(host, tenant))
        await host.adapter.restore_access(tenant)
        for login in (login_of(tenant), new):
            assert await accepted(host, tenant, login), "both passwords of the overlap still work"
        async with session_of(host, tenant) as session:
            await session.run("CALL adding()")


async def _has_no_session(host: EngineHost, tenant: Tenant) -> bool:
    """A login that was refused is listed, too, until its connection is closed."""
    return await host.sessions(tenant.name) == 0


async def test_a_load_that_died_in_a_revoked_tenant_is_closed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.revoke_access(tenant)
        account = f"'{tenant.name}'@'%'"
        await as_root(host, f"ALTER USER {account} ACCOUNT UNLOCK", f"GRANT SELECT ON `{tenant.name}`.* TO {account}")
        session = await host.login(tenant)
        assert await host.adapter.end_dumps([tenant.name]) == 1
        with pytest.raises((ConnectionError, RefusedError)):
            await session.run("SELECT 1")
        assert not await accepted(host, tenant, login_of(tenant))


async def test_a_load_may_wait_for_its_dump_for_as_long_as_it_takes(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        lines = ("CREATE TABLE seen (seconds BIGINT);", "INSERT INTO seen SELECT @@SESSION.wait_timeout;")
        await host.adapter.load(tenant, form_of(host), hostile(tenant, *lines))
        async with session_of(host, tenant) as session:
            assert await session.run("SELECT seconds FROM seen") == [(LONGEST_IDLE_SECONDS,)]


async def test_nothing_in_a_dump_reaches_a_shell_a_file_or_another_database(host: EngineHost, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    async with tenants(host, 2) as [tenant, other]:
        await run_all(host, other, "CREATE TABLE theirs (n INT)")
        for line in (
            f"\\! touch {touched}",
            f"system touch {touched}",
            f"source {touched}",
            f"tee {touched}",
            f"SELECT 1 INTO OUTFILE '{touched}';",
            f"LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE `{other.name}`.theirs;",
            f"INSERT INTO `{other.name}`.theirs VALUES (1);",
            f"DELIMITER //\nUSE {other.name}//\nINSERT INTO theirs VALUES (1)//",
            "CREATE USER intruder;",
            f"CREATE TABLE t (n INT);\nGRANT SELECT ON `{tenant.name}`.* TO `{other.name}`@`%`;",
            "DROP TABLE mysql.user;",
        ):
            with pytest.raises(LoadRefused):
                await host.adapter.load(tenant, form_of(host), hostile(tenant, line))
            await host.adapter.clear(tenant)
        async with session_of(host, other) as session:
            assert await session.run("SELECT * FROM theirs") == []
            assert await refusal(session, f"SELECT 1 FROM `{tenant.name}`.t")
        assert not touched.exists()


async def test_another_definer_is_no_way_to_its_rights(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        line = "CREATE /* */ DEFINER=`root`@`127.0.0.1` VIEW v AS SELECT 1;"
        with pytest.raises(LoadRefused):
            await host.adapter.load(tenant, form_of(host), hostile(tenant, line))


async def test_a_refusal_names_the_statement_and_no_rows(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        line = "INSERT INTO `absent` VALUES ('a secret');"
        with pytest.raises(LoadRefused, match="INSERT INTO `absent`") as refused:
            await host.adapter.load(tenant, form_of(host), hostile(tenant, line))
        assert "secret" not in str(refused.value)
        await host.adapter.clear(tenant)
        line = "CREATE TABLE t (n VARCHAR(99) PRIMARY KEY);\nINSERT INTO `t` VALUES ('a secret'),('a secret');"
        with pytest.raises(LoadRefused, match="Duplicate entry … for key") as refused:
            await host.adapter.load(tenant, form_of(host), hostile(tenant, line))
        assert "secret" not in str(refused.value)
        await host.adapter.clear(tenant)
        with pytest.raises(LoadRefused, match="ends within"):
            await host.adapter.load(tenant, form_of(host), hostile(tenant, "CREATE TABLE t (n INT)"))


async def carry(host: EngineHost, source: Tenant, target: Tenant, patch: pytest.MonkeyPatch) -> None:
    """With no room for files, which is small and shared with other loads."""
    chunks, form, told = await dumped(host, source)
    with patch.context() as without_files:
        without_files.setattr(tempfile, "tempdir", "/nonexistent")
        await host.adapter.load(target, form, each(chunks))
    assert await host.adapter.contents(target) == told


async def test_a_row_longer_than_a_statement_may_be_is_carried(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            [(longest,)] = await session.run("SELECT @@max_allowed_packet")
            size = int(longest) * 5 // 8
            await session.run("CREATE TABLE rows_ (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT, e ENUM('1', '0'))")
            await session.run(
                f"INSERT INTO rows_ VALUES (1, REPEAT(x'00ff275c', {size // 4}), "
                f"REPEAT('\\'\\\\?\\n\\0é', 20000), '0'), (2, '', '', '1'), (3, NULL, NULL, NULL)"
            )
        await carry(host, source, target, monkeypatch)


async def test_values_of_every_type_are_carried_beside_long_ones(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(
            host,
            source,
            *EXACT,
            *NUMBERS,
            "ALTER TABLE exact ADD first_ LONGBLOB DEFAULT NULL FIRST, ADD last_ LONGTEXT, ADD later INT DEFAULT 7",
            "ALTER TABLE numbers ADD b LONGBLOB",
            "UPDATE exact SET first_ = REPEAT(x'00ff275c', 600000), last_ = REPEAT('\\'\\\\x\\n', 1000000)",
            "UPDATE numbers SET b = REPEAT('b', 4500000)",
        )
        await carry(host, source, target, monkeypatch)


async def test_a_row_of_many_values_is_carried(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of which is long by itself."""
    async with tenants(host, 2) as [source, target]:
        columns = ", ".join(f"c{number} TEXT" for number in range(150))
        values = ", ".join(f"REPEAT('{number % 10}', 60000)" for number in range(150))
        await run_all(host, source, f"CREATE TABLE wide ({columns})", f"INSERT INTO wide VALUES ({values})")
        await carry(host, source, target, monkeypatch)


COLUMNS = "(a INT, b INT, c BIGINT UNSIGNED, d TEXT, e BLOB, f BLOB, g TEXT, h DECIMAL(5, 2), i DOUBLE)"
ROW = r"""(-1,NULL,18446744073709551615,'',0x00ff275c,_binary 'a\'\\','it''s \0\n\Z "é";)\\',1.50,2e3)"""


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 5, 1000])
async def test_a_row_is_read_wherever_it_is_cut(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(long_rows, "PIECE_BYTES", 4)
    monkeypatch.setattr(long_rows, "SHORT_BYTES", 3)
    text = f"INSERT INTO `pieces` VALUES {ROW};\n".encode()
    buffer = bytearray(text[:30])

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(30, len(text), chunk_bytes):
            yield text[at : at + chunk_bytes]

    async with tenants(host) as [tenant]:
        connections = MySQLConnections(host.administrator)
        async with connections.tenant(tenant.name, tenant.password, tenant.name) as session:
            for table in ("pieces", "whole"):
                await session.run(f"CREATE TABLE {table} {COLUMNS}")
            await LongRow(buffer, chunks()).run(session)
            assert bytes(buffer) == b"\n", "what follows is left"
            await session.run(f"INSERT INTO whole VALUES {ROW}")
            assert await session.run("SELECT * FROM pieces") == await session.run("SELECT * FROM whole")


@pytest.mark.parametrize(
    "values", ["(1),(2);\n", "(1,2);\n", "();\n", "(NOW());\n", "(0x1);\n", "('a\n", "(1", "(1) AS x;\n", "(@a);\n"]
)
async def test_what_is_no_row_of_the_tools_is_not_run(host: EngineHost, values: str) -> None:
    async with tenants(host) as [tenant]:
        connections = MySQLConnections(host.administrator)
        async with connections.tenant(tenant.name, tenant.password, tenant.name) as session:
            await session.run("CREATE TABLE one (n VARCHAR(10))")
            with pytest.raises(LoadRefused):
                await LongRow(bytearray(f"INSERT INTO `one` VALUES {values}".encode()), each([])).run(session)
        async with session_of(host, tenant) as again:
            assert await again.run("SELECT * FROM one") == []


async def test_others_go_on_while_a_long_row_is_read(host: EngineHost) -> None:
    digits = b"INSERT INTO `long_` VALUES (0x" + b"27" * 2**20
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def rest() -> AsyncIterator[bytes]:
        yield b");\n"

    async with tenants(host) as [tenant]:
        connections = MySQLConnections(host.administrator)
        async with connections.tenant(tenant.name, tenant.password, tenant.name) as session:
            await session.run("CREATE TABLE long_ (b LONGBLOB)")
            waiting = asyncio.create_task(others())
            await LongRow(bytearray(digits), rest()).run(session)
            waiting.cancel()
            assert await session.run("SELECT LENGTH(b) FROM long_") == [(2**20,)]
    assert turns > 2 * 2**20 // long_rows.PIECE_BYTES


DEFINITIONS = {
    "PROCEDURE `above`": ["CREATE PROCEDURE above() SELECT '{}'"],
    "FUNCTION `above`": ["CREATE FUNCTION above() RETURNS TEXT DETERMINISTIC RETURN '{}'"],
    "TRIGGER `above`": ["CREATE TABLE t (n INT)", "CREATE TRIGGER above AFTER INSERT ON t FOR EACH ROW SET @a = '{}'"],
    "TABLE `seen`": ["CREATE VIEW seen AS SELECT '{}' AS c"],
    "TABLE `above`": ["CREATE TABLE above (" + ", ".join(f"c{n} INT COMMENT '{'x' * 1000}'" for n in range(30)) + ")"],
}


@pytest.mark.parametrize("what", [*DEFINITIONS])
async def test_a_definition_that_no_load_takes_is_not_dumped(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *(one.format("x" * 30_000) for one in DEFINITIONS[what]))
        monkeypatch.setattr(relay, "DEFINITION_BYTES", 40_000)
        monkeypatch.setattr(statements, "LONG_BYTES", 40_000)
        await carry(host, source, target, monkeypatch)
        monkeypatch.setattr(relay, "DEFINITION_BYTES", 29_000)
        with pytest.raises(DumpRefused, match=f"(?i)definition of the {what}"):
            await dumped(host, source)
