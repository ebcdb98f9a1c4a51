"""Sessions for questions: the SELECT-only account, its limits, values without loss, cancelling on the server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest

from app.engines.base import EngineError, EngineLimits, LoginRefused, Tenant
from app.engines.mysql import queries as mysql_queries
from app.engines.postgres import described
from app.engines.postgres import queries as postgres_queries
from app.engines.querying import QueryFailed, QueryLimits
from tests.engines.harness import EngineHost, as_root, refusal, session_of, tenants
from tests.engines.ways import way_to
from tests.support.waiting import LIMIT_SECONDS, until

LIMITS = QueryLimits(seconds=20, rows=10)
PASSWORD = "Reader-passw0rd"


def on(host: EngineHost, postgres: Any, mysql: Any) -> Any:
    return postgres if host.flavour == "postgres" else mysql


async def prepare(host: EngineHost, tenant: Tenant, *statements: str) -> None:
    async with session_of(host, tenant) as session:
        for statement in statements:
            await session.run(statement)


async def read(host: EngineHost, tenant: Tenant, sql: str, limits: QueryLimits = LIMITS) -> Any:
    """Rows as a client gets them."""
    async with host.adapter.reading(tenant, PASSWORD, limits) as session:
        result = await session.read(sql)
    return msgspec.json.decode(msgspec.json.encode(result))


async def test_the_reader_reads_what_was_there_and_what_comes_later(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE earlier (n INT)", "INSERT INTO earlier VALUES (1)")
        for _ in range(2):
            await host.adapter.make_reader(tenant, PASSWORD)
        await prepare(host, tenant, "CREATE TABLE later (n INT)", "CREATE VIEW seen AS SELECT n + 1 AS n FROM earlier")
        assert (await read(host, tenant, "SELECT n FROM earlier"))["rows"] == [{"n": 1}]
        assert (await read(host, tenant, "SELECT n FROM seen"))["rows"] == [{"n": 2}]
        assert (await read(host, tenant, "SELECT n FROM later"))["rows"] == []


async def test_a_new_password_replaces_the_old(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, "Another-passw0rd")
        with pytest.raises(LoginRefused):
            await read(host, tenant, "SELECT 1")
        await host.adapter.make_reader(tenant, PASSWORD)
        await read(host, tenant, "SELECT 1")


async def test_the_role_alone_keeps_reads_from_writing(host: EngineHost) -> None:
    """Without the session's read-only mode, and without any look at the statement."""
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n INT)", "INSERT INTO kept VALUES (1)")
        await host.adapter.make_reader(tenant, PASSWORD)
        reader = Tenant(name=f"{tenant.name}_ro", password=PASSWORD, marker=tenant.marker)
        session = await host.login(reader, database=tenant.name)
        for statement in (
            "INSERT INTO kept VALUES (2)",
            "UPDATE kept SET n = 3",
            "DELETE FROM kept",
            "DROP TABLE kept",
            "ALTER TABLE kept ADD COLUMN m INT",
            "TRUNCATE TABLE kept",
            "CREATE TABLE mine (n INT)",
            "CREATE TEMPORARY TABLE mine (n INT)",
            "CREATE VIEW mine AS SELECT 1",
            on(host, "CREATE SCHEMA mine", "CREATE DATABASE mine"),
            on(host, f'SET ROLE "{tenant.name}"', "SET GLOBAL max_connections = 5"),
            on(host, "SELECT pg_read_file('/etc/passwd')", "SELECT 1 INTO OUTFILE '/tmp/headwater-out'"),
            on(host, "SELECT * FROM pg_authid", "SELECT * FROM mysql.user"),
            on(host, "COPY kept TO '/tmp/headwater-out'", "LOAD DATA INFILE '/etc/passwd' INTO TABLE kept"),
        ):
            assert await refusal(session, statement), statement
        await session.close()
        assert (await read(host, tenant, "SELECT n FROM kept"))["rows"] == [{"n": 1}]


async def test_a_reading_session_is_read_only_besides(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n INT)")
        await host.adapter.make_reader(tenant, PASSWORD)
        await as_root(host, *grant_everything(host, tenant))
        for statement in ("INSERT INTO kept VALUES (2)", "SELECT 1; INSERT INTO kept VALUES (2)"):
            with pytest.raises(QueryFailed):
                await read(host, tenant, statement)
        assert (await read(host, tenant, "SELECT n FROM kept"))["rows"] == []


def grant_everything(host: EngineHost, tenant: Tenant) -> list[str]:
    if host.flavour == "postgres":
        return [f'GRANT "{tenant.name}" TO "{tenant.name}_ro"']
    return [f"GRANT ALL ON `{tenant.name}`.* TO '{tenant.name}_ro'@'%'"]


async def test_closed_opened_and_removed_with_the_tenant(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        await host.adapter.revoke_access(tenant)
        with pytest.raises(LoginRefused):
            await read(host, tenant, "SELECT 1")
        with pytest.raises(LoginRefused):
            await host.adapter.make_reader(tenant, PASSWORD)
        await host.adapter.restore_access(tenant)
        await read(host, tenant, "SELECT 1")
        await host.adapter.destroy(tenant)
        assert not [entry for entry in await host.catalog() if any(tenant.name in str(part) for part in entry)]
        with pytest.raises(EngineError):
            await host.adapter.make_reader(tenant, PASSWORD)


async def test_rows_are_capped(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        numbers = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {}) SELECT n FROM s"
        for count, truncated in ((9, False), (10, False), (11, True), (900, True)):
            result = await read(host, tenant, numbers.format(count))
            assert (len(result["rows"]), result["truncated"]) == (min(count, 10), truncated)
        many = await read(host, tenant, numbers.format(400), msgspec.structs.replace(LIMITS, rows=400))
        assert (len(many["rows"]), many["truncated"]) == (400, False)


async def test_octets_are_capped(host: EngineHost) -> None:
    small = msgspec.structs.replace(LIMITS, octets=100_000)
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        rows = "SELECT repeat('x', {0}) AS x UNION ALL SELECT repeat('y', {0}) UNION ALL SELECT repeat('z', {0})"
        result = await read(host, tenant, rows.format(60_000), small)
        assert (len(result["rows"]), result["truncated"]) == (1, True)
        for size in (150_000, 10_000_000):
            with pytest.raises(QueryFailed, match="larger than"):
                await read(host, tenant, f"SELECT repeat('x', {size}) AS x", small)


async def test_time_is_limited_on_the_server(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        with pytest.raises(QueryFailed) as caught:
            await read(host, tenant, slow(host), msgspec.structs.replace(LIMITS, seconds=0.5))
        assert caught.value.code in ("57014", "1969", "3024", "1317")
        await gone(host, tenant)


def slow(host: EngineHost) -> str:
    """Ten minutes of work, at least; MySQL lets a sleep that was cut short pass for an answer."""
    if host.flavour == "postgres":
        return "SELECT pg_sleep(600)"
    return (
        "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c"
    )


async def gone(host: EngineHost, tenant: Tenant) -> None:
    async def nobody() -> bool:
        return not await host.sessions(tenant.name)

    await until(nobody)


@pytest.mark.parametrize("way", ["read", "write"])
async def test_a_cancelled_statement_ends_on_the_server(host: EngineHost, way: str) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n BIGINT)")
        await host.adapter.make_reader(tenant, PASSWORD)

        async def run() -> None:
            # Nothing but the cancelling ends it in time.
            patient = msgspec.structs.replace(LIMITS, seconds=120)
            if way == "read":
                await read(host, tenant, slow(host), patient)
            else:
                async with host.adapter.writing(tenant, patient) as session:
                    await session.write(f"INSERT INTO kept {on(host, 'SELECT 1 FROM pg_sleep(600)', slow(host))}")

        task = asyncio.create_task(run())
        await until(lambda: host.statements(tenant.name))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await gone(host, tenant)
        assert (await read(host, tenant, "SELECT n FROM kept"))["rows"] == []


async def test_a_host_that_is_lost_in_the_middle(host: EngineHost) -> None:
    """It takes no connection either, by which the statement would be ended."""
    async with tenants(host) as [tenant], AsyncExitStack() as while_there:
        await host.adapter.make_reader(tenant, PASSWORD)
        way = await while_there.enter_async_context(way_to(host))
        adapter = type(host.adapter)(msgspec.structs.replace(host.administrator, port=way.port))
        async with adapter.reading(tenant, PASSWORD, LIMITS) as session:
            reading = asyncio.create_task(session.read(slow(host)))
            await until(lambda: host.statements(tenant.name))
            await while_there.aclose()
            way.break_off()
            with pytest.raises(QueryFailed):
                await reading
        await adapter.close()


async def test_writes_and_changes(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with host.adapter.writing(tenant, LIMITS) as session:
            assert await session.change(["CREATE TABLE a (n INT)", "CREATE TABLE b (n INT)"]) == 2
        async with host.adapter.writing(tenant, LIMITS) as session:
            assert await session.write("INSERT INTO a VALUES (1), (2), (3)") == 3
        async with host.adapter.writing(tenant, LIMITS) as session:
            assert await session.write("DELETE FROM a WHERE n > 1") == 2
        async with host.adapter.writing(tenant, LIMITS) as session:
            with pytest.raises(QueryFailed) as caught:
                await session.change(["CREATE TABLE c (n INT)", "CREATE TABLE a (n INT)"])
        assert caught.value.executed == on(host, 0, 1)
        async with session_of(host, tenant) as plain:
            there = await plain.run("SELECT 1 FROM information_schema.tables WHERE table_name = 'c'")
        assert len(there) == on(host, 0, 1), "PostgreSQL takes the first back, MySQL keeps it"


async def test_a_statement_is_one_statement(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE a (n INT)")
        async with host.adapter.writing(tenant, LIMITS) as session:
            with pytest.raises(QueryFailed):
                await session.write("INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)")
        await host.adapter.make_reader(tenant, PASSWORD)
        assert (await read(host, tenant, "SELECT * FROM a"))["rows"] == []


async def reads_another_way(host: EngineHost, tenant: Tenant) -> str:
    """A statement that changes the schema, as a question may, and how the server reads what comes after it."""
    if host.flavour == "postgres":
        hidden = (
            "CREATE FUNCTION hidden() RETURNS text LANGUAGE plpgsql AS $$"
            " BEGIN EXECUTE 'SET standard_' || 'conforming_strings = off'; RETURN ''; END $$"
        )
        await prepare(host, tenant, hidden)
        return "CREATE TABLE a AS SELECT hidden() AS t"
    return "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH', '_ESCAPES')"


async def test_a_change_of_the_reading_ends_the_changes(host: EngineHost) -> None:
    """What was judged as text would come to be a call of a function."""
    second = on(
        host,
        "CREATE TABLE b AS SELECT '\\' AS x, ', current_user AS y --'",
        "CREATE TABLE b AS SELECT 'a\\', ' AS x, CURRENT_USER() AS y",
    )
    async with tenants(host) as [tenant]:
        first = await reads_another_way(host, tenant)
        async with host.adapter.writing(tenant, LIMITS) as session:
            with pytest.raises(QueryFailed, match=r"(conforming_strings|sql_mode) .*changes how the rest") as failed:
                await session.change([first, second])
        assert (failed.value.executed, failed.value.certain) == on(host, (0, True), (1, True))
        async with session_of(host, tenant) as session:
            assert await refusal(session, "SELECT 1 FROM b") is not None
            assert (await refusal(session, "SELECT 1 FROM a") is not None) or host.flavour != "postgres"


async def test_a_change_that_ends_its_transaction_is_in_doubt(host: EngineHost) -> None:
    ends = on(host, "COMMIT", "START TRANSACTION")
    async with tenants(host) as [tenant], host.adapter.writing(tenant, LIMITS) as session:
        with pytest.raises(QueryFailed, match="transaction") as failed:
            await session.change(["CREATE TABLE a (n INT)", ends, "CREATE TABLE b (n INT)"])
        assert not failed.value.certain


async def test_a_change_after_which_answers_cant_be_read_is_in_doubt(host: EngineHost) -> None:
    if host.flavour == "postgres":
        pytest.skip("other settings are refused here")
    async with tenants(host) as [tenant], host.adapter.writing(tenant, LIMITS) as session:
        with pytest.raises(QueryFailed, match="can't be read") as failed:
            await session.change(["SET character_set_results = utf16", "CREATE TABLE b (n INT)"])
        assert (failed.value.executed, failed.value.certain) == (1, False)


async def test_a_write_that_is_waited_for_no_longer_is_in_doubt(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended on the server although the account has no session left to do so."""
    if host.flavour == "postgres":
        pytest.skip("nothing is permanent here before the commit")
    # MariaDB's own limit would end it.
    lifted = "SET STATEMENT max_statement_time = 0 FOR " if host.flavour == "mariadb" else ""
    monkeypatch.setattr(mysql_queries, "CLOSE_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr(mysql_queries, "MARGIN_SECONDS", 0.1)
    async with tenants(host, limits=EngineLimits(connections=1)) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n INT)")
        hurried = msgspec.structs.replace(LIMITS, seconds=0.5)
        async with host.adapter.writing(tenant, hurried) as session:
            with pytest.raises(QueryFailed, match="time limit") as failed:
                await session.write(f"{lifted}INSERT INTO kept {slow(host)}")
        assert not failed.value.certain
        await gone(host, tenant)


async def test_changes_have_one_time_limit_together(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is far from it."""
    if host.flavour == "postgres":
        pytest.skip("they are one transaction here, and limited as one")
    monkeypatch.setattr(mysql_queries, "MARGIN_SECONDS", 0.5)
    hurried = msgspec.structs.replace(LIMITS, seconds=1.5)
    statements = [f"CREATE TABLE t{number} AS SELECT SLEEP(0.4) AS n" for number in range(10)]
    async with tenants(host) as [tenant]:
        async with host.adapter.writing(tenant, hurried) as session:
            with pytest.raises(QueryFailed, match=r"interrupted|time limit") as failed:
                await session.change(statements)
        await gone(host, tenant)
        async with session_of(host, tenant) as plain:
            there = await plain.run("SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()")
        assert failed.value.executed < len(statements)
        assert len(there) - failed.value.executed in (0, 1), "the last one may have been done when it was ended"


async def test_a_commit_that_is_waited_for_no_longer_is_in_doubt(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host.flavour != "postgres":
        pytest.skip("each statement commits by itself here")
    limits: list[asyncio.Timeout] = []

    @asynccontextmanager
    async def bounded(_: QueryLimits) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            yield

    monkeypatch.setattr(postgres_queries, "time_limited", bounded)
    patient = msgspec.structs.replace(LIMITS, seconds=600)
    async with tenants(host) as [tenant]:
        await prepare(
            host,
            tenant,
            "CREATE TABLE first (n INT)",
            "CREATE TABLE second (n INT)",
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$",
            "CREATE TRIGGER slow AFTER INSERT ON first FOR EACH ROW EXECUTE FUNCTION slow()",
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON second DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        for table, waits_in, certain in (("first", "INSERT", True), ("second", "COMMIT", False)):
            async with host.adapter.writing(tenant, patient) as session:
                writing = asyncio.create_task(session.write(f"INSERT INTO {table} VALUES (1)"))
                await until(partial(runs, host, tenant, waits_in))
                limits.pop().reschedule(0)
                with pytest.raises(QueryFailed, match="timeout") as failed:
                    await writing
            assert failed.value.certain == certain


async def runs(host: EngineHost, tenant: Tenant, beginning: str) -> bool:
    return any(statement.startswith(beginning) for statement in await host.statements(tenant.name))


async def test_what_is_described(host: EngineHost) -> None:
    comment = on(host, [], [" COMMENT 'who bought'"])
    async with tenants(host) as [tenant]:
        await prepare(
            host,
            tenant,
            "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL)" + "".join(comment),
            "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT, "
            "FOREIGN KEY (customer_id) REFERENCES customers (id))",
            "CREATE VIEW buyers AS SELECT name FROM customers",
            *on(host, ["COMMENT ON TABLE customers IS 'who bought'"], []),
        )
        await host.adapter.make_reader(tenant, PASSWORD)
        async with host.adapter.reading(tenant, PASSWORD, LIMITS) as session:
            description = await session.describe()
            tables = {table.name: table for table in description.tables}
            assert (await session.read("SELECT 1 AS n")).rows == [{"n": 1}], "the same session then reads"
        assert tables.keys() == {"customers", "orders", "buyers"}
        customers, orders = tables["customers"], tables["orders"]
        assert customers.comment == "who bought"
        assert customers.primary_key == ("id",)
        assert [(column.name, column.required) for column in customers.columns] == [("id", True), ("name", True)]
        assert "char" in customers.columns[1].type
        assert [(key.columns, key.table, key.target_columns) for key in orders.references] == [
            (("customer_id",), customers.key, ("id",))
        ]
        assert tables["buyers"].is_view
        assert not customers.is_view


async def test_a_description_calls_nothing_of_the_tenants(host: EngineHost) -> None:
    """For just these types a function of its own would be nearer than the server's."""
    if host.flavour != "postgres":
        pytest.skip("functions of others have no names of the server's here")
    body = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called'; END $$"
    async with tenants(host) as [tenant]:
        await prepare(
            host,
            tenant,
            "CREATE TABLE a (n INT)",
            f"CREATE FUNCTION public.concat(bigint, text, numeric) RETURNS text {body}",
            f"CREATE FUNCTION public.starts_with(name, text) RETURNS boolean {body}",
            f"CREATE FUNCTION public.format_type(oid, int) RETURNS text {body}",
        )
        await host.adapter.make_reader(tenant, PASSWORD)
        async with host.adapter.reading(tenant, PASSWORD, LIMITS) as session:
            description = await session.describe()
            assert await session.describe(description) is description
            assert [table.name for table in description.tables] == ["a"]
            assert (await session.read("SELECT current_schema() AS s FROM a RIGHT JOIN (SELECT 1) b ON true")).rows == [
                {"s": "public"}
            ]


async def test_types_are_described_as_statements_name_them(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("there are no types of the tenant's")
    async with tenants(host) as [tenant]:
        await prepare(
            host,
            tenant,
            "CREATE TYPE mood AS ENUM ('good')",
            'CREATE DOMAIN public."Odd, na.me" AS varchar(3)',
            "CREATE TYPE public.text AS ENUM ('hidden by the server''s')",
            "CREATE SCHEMA other",
            "CREATE DOMAIN other.mood AS int",
            'CREATE SCHEMA "public.x"',
            'CREATE DOMAIN "public.x".d AS int',
            'CREATE TABLE a (a mood, b mood[], c "Odd, na.me", d public.text, e public.text[], f other.mood,'
            ' g "public.x".d, h numeric(5, 2), i timestamp(3) with time zone[], j text)',
        )
        async with session_of(host, tenant) as session:
            await session.run("SET search_path = public, pg_temp")
            expected = await session.run(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = 'a'::regclass AND attnum > 0 ORDER BY attnum"
            )
        await host.adapter.make_reader(tenant, PASSWORD)
        async with host.adapter.reading(tenant, PASSWORD, LIMITS) as reading:
            [table] = (await reading.describe()).tables
    assert [column.type for column in table.columns] == [name for (name,) in expected]
    assert [column.type for column in table.columns][:4] == ["mood", "mood[]", '"Odd, na.me"', "public.text"]


async def test_a_description_that_takes_too_long(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has lifted the server's limit, ours ends it."""
    if host.flavour != "postgres":
        pytest.skip("the server's limit can't be lifted here")

    async def slow(connection: Any) -> str:
        await connection.execute("SET statement_timeout = 0; SELECT pg_sleep(86400)")
        return ""

    monkeypatch.setattr(described, "version", slow)
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with host.adapter.reading(tenant, PASSWORD, QueryLimits(seconds=0.2, rows=1)) as session:
            with pytest.raises(QueryFailed) as failed:
                await session.describe()
    assert failed.value.code == "57014"


async def test_a_description_is_known_again_until_something_changes(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE a (n INT)")
        await host.adapter.make_reader(tenant, PASSWORD)
        known = None
        for change in (
            "CREATE TABLE b (n INT)",
            "ALTER TABLE a ADD COLUMN m INT",
            on(host, "COMMENT ON TABLE a IS 'x'", "ALTER TABLE a COMMENT 'x'"),
            on(host, "ALTER TABLE a RENAME COLUMN m TO o", "ALTER TABLE a CHANGE m o INT"),
            "ALTER TABLE a ADD PRIMARY KEY (n)",
            "CREATE TABLE d (n INT, FOREIGN KEY (n) REFERENCES a (n))",
            on(host, "ALTER TABLE d ALTER COLUMN n TYPE bigint", "ALTER TABLE b MODIFY n BIGINT"),
            on(host, "COMMENT ON COLUMN b.n IS 'y'", "ALTER TABLE b MODIFY n BIGINT COMMENT 'y'"),
            "DROP TABLE d",
            "ALTER TABLE b RENAME TO c",
            "DROP TABLE c",
        ):
            async with host.adapter.reading(tenant, PASSWORD, LIMITS) as session:
                known = await session.describe(known)
                assert await session.describe(known) is known
            await prepare(host, tenant, change)
            async with host.adapter.reading(tenant, PASSWORD, LIMITS) as session:
                now = await session.describe(known)
            assert now.tables != known.tables, change
            known = now
        assert [table.name for table in (known.tables if known else [])] == ["a"]


async def test_a_frozen_database_is_read_and_not_written(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n INT)", "INSERT INTO kept VALUES (1)")
        await host.adapter.freeze(tenant)
        await host.adapter.make_reader(tenant, PASSWORD)
        assert (await read(host, tenant, "SELECT n FROM kept"))["rows"] == [{"n": 1}]
        async with host.adapter.writing(tenant, LIMITS) as session:
            with pytest.raises(QueryFailed):
                await session.write("INSERT INTO kept VALUES (2)")
        async with host.adapter.writing(tenant, LIMITS) as session:
            assert await session.write("DELETE FROM kept WHERE n = 1") == 1
        await host.adapter.thaw(tenant)
        async with host.adapter.writing(tenant, LIMITS) as session:
            assert await session.write("INSERT INTO kept VALUES (3)") == 1
        assert (await read(host, tenant, "SELECT n FROM kept"))["rows"] == [{"n": 3}]
