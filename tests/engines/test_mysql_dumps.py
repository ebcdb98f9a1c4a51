"""What a dump of MySQL and MariaDB has to carry that their tools print less exactly than it is stored."""

import asyncio
import os
import tempfile
from functools import partial
from pathlib import Path

import pytest

from app.engines import dumping as dumping_module
from app.engines.base import EngineError, HostUnavailable
from app.engines.dumping import DumpRefused
from app.engines.mysql import connection
from app.engines.mysql.accounts import LOAD_PURPOSE
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.dumps import accounts
from app.engines.mysql.dumps.accounts import reading_session
from app.engines.mysql.dumps.dump import blames_server
from app.engines.mysql.dumps.tables import TableList, table_ids
from tests.engines.harness import EngineHost, as_root, session_of, tenants
from tests.engines.mysql_dumping import dumped, each, helpers_left, run_all, skip_without_tool, until_left
from tests.engines.test_dumps import tables
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")


@pytest.fixture(autouse=True)
async def _tool(host: EngineHost) -> None:
    await skip_without_tool(host)


EXACT = (
    "SET sql_mode = 'ALLOW_INVALID_DATES'",
    """
    CREATE TABLE exact (
        id INT AUTO_INCREMENT PRIMARY KEY, f FLOAT, g FLOAT(10, 3), d DOUBLE, m DOUBLE(12, 4),
        e ENUM('x', '', 'y'), s SET('p', 'q'), b BIT(5), raw BINARY(4), day DATE, at TIMESTAMP(6) NULL,
        western VARCHAR(20) CHARACTER SET latin1, japanese VARCHAR(20) CHARACTER SET cp932,
        wide VARCHAR(20) CHARACTER SET utf16, twice DOUBLE AS (d / 2) VIRTUAL, place GEOMETRY
    )
    """,
    """
    INSERT INTO exact (f, g, d, m, e, s, b, raw, day, at, western, japanese, wide, place) VALUES
    (16777215, 1234.567, '-0', 0.1, 'y', 'p,q', b'101', 'a', '2020-02-30', '2020-01-01 00:00:00.000001',
     x'80818d8f909dff', x'fa5481ca', x'0041d83dde00', ST_GeomFromText('POINT(1 2)')),
    (3.402823466e38, -0.001, -2.2250738585072014e-308, -1, 0, '', b'0', x'00ff', '0000-00-00', NULL,
     '', '', '', NULL),
    (1e-45, 0, 1.7976931348623157e308, 99999999.9999, '', 'q', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    """,
)
STORED = "SELECT CAST(f * 1e0 AS CHAR), d, CAST(e AS UNSIGNED), HEX(western), HEX(japanese), HEX(wide), day FROM exact"


async def test_values_that_the_tools_print_inexactly_are_carried_exactly(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *EXACT)
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, each(chunks))
        assert await host.adapter.contents(target) == told
        assert await host.as_root_in(target, STORED.replace("exact", f"{target.name}.exact")) == (
            await host.as_root_in(source, STORED.replace("exact", f"{source.name}.exact"))
        )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE exact SET f = 16777216 WHERE id = 1",
        "UPDATE exact SET e = 2 WHERE id = 2",
        "UPDATE exact SET japanese = x'81ca81ca' WHERE id = 1",
        "DELETE FROM exact WHERE id = 3",
    ],
)
async def test_a_difference_that_the_tools_do_not_print_is_seen(host: EngineHost, change: str) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *EXACT)
        before = await host.adapter.contents(tenant)
        await run_all(host, tenant, change)
        assert await host.adapter.contents(tenant) != before


HELD_UP = (
    # More than the tool, its pipe and we hold: it waits in this table until somebody reads.
    "CREATE TABLE a_first (id INT PRIMARY KEY, t LONGTEXT)",
    *(f"INSERT INTO a_first VALUES ({number}, REPEAT('x', 2000000))" for number in range(5)),
    "CREATE TABLE b (n INT PRIMARY KEY)",
    "INSERT INTO b VALUES (1)",
    "CREATE TABLE c LIKE b",
    "INSERT INTO c VALUES (2)",
)


async def test_a_dump_shows_its_moment_whatever_is_written_after_it(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *HELD_UP)
        before = await host.adapter.contents(source)
        async with host.adapter.dumping(source) as dump:
            await run_all(
                host,
                source,
                "INSERT INTO b VALUES (3)",
                "DELETE FROM c",
                "CREATE TABLE d (n INT)",
                "INSERT INTO d VALUES (4)",
            )
            chunks = [chunk async for chunk in dump.chunks()]
            assert await dump.contents() == before
        await host.adapter.load(target, dump.format, each(chunks))
        assert await host.adapter.contents(target) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("RENAME TABLE b TO x, c TO b, x TO c", "renamed"),
        ("TRUNCATE b", "definition has changed"),
        ("DROP TABLE c", "table 'c' was dropped|doesn't exist"),
        # The table has no name for a moment at its end: the tool may list the tables then.
        ("ALTER TABLE b ADD COLUMN m INT DEFAULT 5, ALGORITHM = COPY", "definition has changed|table 'b' was dropped"),
    ],
)
async def test_a_table_that_is_changed_before_the_dump_has_it_fails_it(
    host: EngineHost, change: str, reason: str
) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *HELD_UP)
        with pytest.raises(DumpRefused, match=reason):
            await dumped(host, tenant, partial(run_all, host, tenant, change))
        await until_left(host, tenant)


async def test_a_table_that_is_locked_for_ever_fails_it(host: EngineHost) -> None:
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await run_all(host, tenant, "CREATE TABLE held (n INT)")
        await session.run("LOCK TABLES held WRITE")
        with pytest.raises(DumpRefused, match="'held' is locked"):
            await dumped(host, tenant)


async def test_what_a_snapshot_does_not_hold_is_refused_by_name(host: EngineHost) -> None:
    if host.flavour == "mysql":
        pytest.skip("tenants can make no such table here")
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, "CREATE TABLE versions (n INT) WITH SYSTEM VERSIONING")
        with pytest.raises(DumpRefused, match="'versions' is a system versioned table"):
            await dumped(host, tenant)
        await run_all(host, tenant, "DROP TABLE versions")
        await as_root(
            host,
            "SET SESSION enforce_storage_engine = NULL",
            f"CREATE TABLE `{tenant.name}`.torn (n INT) ENGINE = MyISAM",
        )
        with pytest.raises(DumpRefused, match="'torn' is kept by MyISAM"):
            await dumped(host, tenant)


async def test_more_tables_than_a_dump_may_have_are_not_even_read(host: EngineHost) -> None:
    partitioned = "CREATE TABLE parts (n INT) PARTITION BY HASH (n) PARTITIONS 3"
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, "CREATE TABLE one (n INT)", partitioned, "CREATE VIEW seen AS SELECT n FROM one")
        async with MySQLConnections(host.administrator).extra() as session:
            found = await TableList.read(session, tenant.name, 3)
            assert [sorted(found.kinds), found.views] == [["one", "parts"], ("seen",)]
            ids = await table_ids(session, tenant.name, 4)
            assert len(ids) == 4
            with pytest.raises(DumpRefused, match="more than 2 tables and views"):
                await TableList.read(session, tenant.name, 2)
            with pytest.raises(DumpRefused, match="more than 3 tables and partitions"):
                await table_ids(session, tenant.name, 3)


async def test_json_that_its_text_does_not_tell_is_refused_by_name(host: EngineHost) -> None:
    if host.flavour == "mariadb":
        pytest.skip("it stores the text")
    async with tenants(host) as [tenant]:
        await run_all(
            host, tenant, "CREATE TABLE documents (j JSON)", "INSERT INTO documents VALUES ('[1, 2.50, \"x\"]')"
        )
        await dumped(host, tenant)
        await run_all(host, tenant, "INSERT INTO documents VALUES (JSON_OBJECT('day', DATE '2020-01-01'))")
        with pytest.raises(DumpRefused, match="'documents' has JSON"):
            await dumped(host, tenant)


def slow_documents(rows: int) -> tuple[str, ...]:
    """The scan for documents computes each several times, for a tenth of a second or more together."""
    return (
        "CREATE TABLE slow (n INT PRIMARY KEY, one CHAR(1) DEFAULT 'x')",
        "INSERT INTO slow (n) "
        f"WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {rows}) SELECT n FROM c",
        "ALTER TABLE slow ADD j JSON AS (JSON_ARRAY(SHA2(REPEAT(one, 20000000), 512))) VIRTUAL",
    )


SCANS = "SELECT id FROM information_schema.processlist WHERE user = '{}_dump' AND info LIKE 'SELECT 1 FROM%'"


async def test_documents_may_take_longer_than_a_statement_of_ours(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host.flavour == "mariadb":
        pytest.skip("it stores the text")
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *slow_documents(24))
        async with host.adapter.dumping(tenant) as dump:
            with monkeypatch.context() as patch:
                patch.setattr(connection, "STATEMENT_SECONDS", 1)
                async for _ in dump.chunks():
                    pass
            assert tables(await dump.contents()) == {"slow": 24}


async def test_a_scan_for_documents_ends_with_its_dump(host: EngineHost) -> None:
    if host.flavour == "mariadb":
        pytest.skip("it stores the text")
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *slow_documents(900))
        dumping = asyncio.create_task(dumped(host, tenant))
        await until(lambda: as_root(host, SCANS.format(tenant.name)))
        dumping.cancel()
        await asyncio.gather(dumping, return_exceptions=True)
        assert dumping.cancelled()

        async def gone() -> bool:
            return await helpers_left(host, tenant) == ([], 0)

        await until(gone, timeout=20)


async def test_a_server_without_an_answer_is_no_fault_of_ours(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `TimeoutError` would be taken for one of our own database."""
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *HELD_UP)
        async with host.adapter.dumping(tenant) as dump:
            with monkeypatch.context() as patch:
                patch.setattr(connection, "STATEMENT_SECONDS", 0)
                with pytest.raises(HostUnavailable, match="no answer in time"):
                    async for _ in dump.chunks():
                        pass


async def test_a_row_that_the_tool_has_no_memory_for_is_refused_by_name(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tenants(host) as [tenant]:
        await run_all(
            host,
            tenant,
            "CREATE TABLE wide (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, c LONGBLOB)",
            "INSERT INTO wide VALUES (1, REPEAT('a', 9000000), REPEAT('b', 9000000), REPEAT('c', 9000000))",
        )
        monkeypatch.setattr(dumping_module, "TOOL_MEMORY_BYTES", 64 * 2**20)
        with pytest.raises(DumpRefused, match="the table 'wide'"):
            await dumped(host, tenant)
        await until_left(host, tenant)


async def test_a_dump_that_is_under_way_has_no_folder_that_a_kill_would_leave(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A socket's path has 107 bytes at most, which pytest's folders may leave no room for.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        async with tenants(host) as [tenant], host.adapter.dumping(tenant):
            assert os.listdir(folder) == []


async def test_a_dump_that_is_broken_off_leaves_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *HELD_UP)
        async with host.adapter.dumping(tenant) as dump:
            async for _ in dump.chunks():
                break
            with pytest.raises(EngineError, match="another dump"):
                await dumped(host, tenant)
        await until_left(host, tenant)


async def test_the_sessions_of_a_dump_may_be_idle_for_as_long_as_it_takes(host: EngineHost) -> None:
    """A host may end idle sessions after minutes, and with them the lock by which others see that a dump lives."""
    connections = MySQLConnections(host.administrator)
    async with tenants(host) as [tenant]:
        try:
            async with (
                connections.extra() as administrator,
                reading_session(connections, administrator, tenant, LOAD_PURPOSE) as session,
            ):
                for one in (administrator, session):
                    seconds = await one.run("SELECT @@SESSION.wait_timeout")
                    assert seconds == [(connection.LONGEST_IDLE_SECONDS,)]
        finally:
            await connections.close()


async def test_a_dump_whose_session_ends_fails(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *HELD_UP)

        async def kill() -> None:
            asked = f"SELECT id FROM information_schema.processlist WHERE user = '{tenant.name}_dump'"
            [(number,)] = await as_root(host, asked)
            await as_root(host, f"KILL {number}")

        with pytest.raises(EngineError):
            await dumped(host, tenant, kill)
        await until_left(host, tenant)


async def test_a_session_that_ends_while_it_waits_for_a_table_refuses_nothing(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt may be made. So it is where the server shuts down."""
    monkeypatch.setattr(accounts, "LOCK_SECONDS", 600)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await run_all(host, tenant, "CREATE TABLE held (n INT)")
        await session.run("LOCK TABLES held WRITE")
        dumping = asyncio.create_task(dumped(host, tenant))
        try:
            await until(lambda: host.lock_waits(tenant.name))
            asked = f"SELECT id FROM information_schema.processlist WHERE user = '{tenant.name}_dump'"
            [(number,)] = await as_root(host, asked)
            await as_root(host, f"KILL {number}")
            with pytest.raises(HostUnavailable, match="ended the session"):
                await dumping
        finally:
            dumping.cancel()
            await asyncio.gather(dumping, return_exceptions=True)


@pytest.mark.parametrize(
    ("complaint", "blames"),
    [
        ("mysqldump: Error 1053: Server shutdown in progress when dumping table `b` at row: 7", True),
        ("mariadb-dump: Error 1927: Connection was killed when dumping table `b` at row: 7", True),
        ("mariadb-dump: Couldn't execute 'SHOW TRIGGERS LIKE 'b'': Server shutdown in progress (1053)", True),
        ('mariadb-dump: Got error: 1053: "Server shutdown in progress" when selecting the database', True),
        ("mariadb-dump: Error 2013: Lost connection to server during query when dumping table `b` at row: 7", False),
        ("mysqldump: Couldn't execute 'SHOW FIELDS FROM `v`': View 'v' references invalid table(s) (1356)", False),
        ("mysqldump: Error 1412: Table definition has changed when dumping table `(1053)` at row: 0", False),
    ],
)
async def test_a_tool_says_whether_the_server_ended_its_session(host: EngineHost, complaint: str, blames: bool) -> None:
    assert blames_server(complaint) is blames


async def test_what_a_process_that_died_left_is_removed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        left = [f"CREATE USER '{tenant.name}_{purpose}'@'%' IDENTIFIED BY 'Left-0ver'" for purpose in ("dump", "load")]
        await as_root(host, *left)
        await dumped(host, tenant)
        await until_left(host, tenant, f"{tenant.name}_load")
        assert await host.adapter.end_dumps([tenant.name]) == 1
        assert await host.adapter.end_dumps([tenant.name]) == 0
        await until_left(host, tenant)


async def test_a_host_without_its_tool_says_what_to_install(
    host: EngineHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = "HEADWATER_MARIADB_DUMP" if host.flavour == "mariadb" else "HEADWATER_MYSQLDUMP"
    monkeypatch.setenv(setting, str(tmp_path / "absent"))
    async with tenants(host) as [tenant]:
        with pytest.raises(EngineError, match=f"Install the package .*{setting}"):
            await dumped(host, tenant)
    assert any(shortcoming.startswith("No backups") for shortcoming in (await host.adapter.inspect_host()).shortcomings)


async def test_a_revocation_leaves_a_dump_that_is_under_way(host: EngineHost) -> None:
    """So does a freeze, and a destruction ends it."""
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *HELD_UP)
        async with host.adapter.dumping(tenant) as dump:
            await host.adapter.freeze(tenant)
            async for _ in dump.chunks():
                pass
            assert len(tables(await dump.contents())) == 3
        async with host.adapter.dumping(tenant) as dump:
            await host.adapter.revoke_access(tenant)
            async for _ in dump.chunks():
                pass
            assert len(tables(await dump.contents())) == 3
        await host.adapter.restore_access(tenant)
        async with host.adapter.dumping(tenant) as dump:
            await host.adapter.destroy(tenant)
            with pytest.raises(EngineError):
                async for _ in dump.chunks():
                    pass
        await until_left(host, tenant)
