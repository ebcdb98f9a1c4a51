"""Whatever a tenant's server sends, a process with little memory outlives it: in a process of its own, which has some
200 MiB more than it begins with."""

import asyncio
import sys
from typing import Any

import msgspec
import pytest

from app.contracts.base import Engine
from app.engines.base import Tenant
from app.engines.errors import MAX_MESSAGE
from app.engines.querying import MAX_COLUMNS, MAX_COMMENT, MAX_TYPE
from tests.engines import bounded_process
from tests.engines.harness import EngineHost, session_of, tenants

PASSWORD = "Reader-passw0rd"
WIDE = ", ".join(f"repeat('{letter}', 15000000) AS {letter}{n}" for letter in "abcdef" for n in range(3))
"""270 MB in one row."""


def on(host: EngineHost, postgres: Any, mysql: Any) -> Any:
    return postgres if host.flavour == "postgres" else mysql


async def outcomes(host: EngineHost, tenant: Tenant, *calls: list[str]) -> list[dict[str, Any]]:
    job = bounded_process.Job(
        engine=Engine.POSTGRES if host.flavour == "postgres" else Engine.MYSQL,
        address=host.administrator,
        tenant=tenant,
        reader=PASSWORD,
        calls=list(calls),
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        bounded_process.__name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await process.communicate(msgspec.json.encode(job))
    assert process.returncode == 0, complaints.decode()[-2000:]
    found: list[dict[str, Any]] = msgspec.json.decode(printed)
    return found


async def test_a_row_of_hundreds_of_megabytes(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        narrow = ", ".join(f"'{n}'" for n in range(18))
        first, second, after = await outcomes(
            host,
            tenant,
            ["read", f"SELECT {WIDE}"],
            ["read", f"SELECT {narrow} UNION ALL SELECT {WIDE}"],
            ["read", "SELECT 1"],
        )
    assert first["error"] == "QueryFailed"
    assert "larger than" in first["message"]
    # MySQL's rows come one by one: those before it are an answer.
    assert second.get("truncated") or "larger than" in second["message"]
    assert after == {"rows": 1, "truncated": False}


async def test_lists_that_take_many_times_the_memory_of_their_text(host: EngineHost) -> None:
    """A value that comes may have 32 MB. As objects each of these would take more than there is."""
    if host.flavour != "postgres":
        pytest.skip("there are no arrays, and JSON comes alone")
    numbers = "array_fill(1, ARRAY[{}])"
    documents = "(repeat('[[[[],[],[],[]]]],', {}))"
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        found = await outcomes(
            host,
            tenant,
            ["read", f"SELECT {numbers.format(15_000_000)}"],
            ["read", f"SELECT {numbers.format(3_900_000)}"],
            ["read", f"SELECT {numbers.format(500_000)} FROM generate_series(1, 100)"],
            ["read", f"SELECT ('[' || {documents.format(400_000)} || '1]')::json"],
            ["read", f"SELECT ('[' || {documents.format(1_500_000)} || '1]')::json"],
        )
    assert [each.get("error") for each in found] == ["QueryFailed", None, None, None, "QueryFailed"]
    assert all("larger than" in each["message"] for each in (found[0], found[4]))
    assert found[1] == found[3] == {"rows": 1, "truncated": False}
    assert found[2] == {"rows": 2, "truncated": True}


async def test_rows_that_are_too_much_together_are_cut_off(host: EngineHost) -> None:
    """1,000 rows of half a megabyte: those that have room are an answer."""
    numbers = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 1000)"
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        [found] = await outcomes(host, tenant, ["read", f"{numbers} SELECT n, repeat('x', 500000) AS x FROM s"])
    assert found["truncated"]
    assert found["rows"] == bounded_process.LIMITS.octets // 500_000


async def test_a_script_that_answers_with_hundreds_of_megabytes(host: EngineHost) -> None:
    """Rows are nobody's, and are thrown away before they are whole. What comes after them takes effect."""
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            if host.flavour != "postgres":
                await session.run(
                    f"CREATE PROCEDURE chatty() BEGIN SELECT {WIDE}; SELECT {WIDE}; INSERT INTO kept VALUES (1); END"
                )
        loud = f"DO $$ BEGIN PERFORM 1; {notices()} INSERT INTO kept VALUES (1); END $$"
        row, chatty = await outcomes(
            host, tenant, ["script", f"SELECT {WIDE}"], ["script", on(host, loud, "CALL chatty()")]
        )
        async with session_of(host, tenant) as session:
            assert [tuple(row) for row in await session.run("SELECT n FROM kept")] == [(1,)]
    assert row == {"rows": 1}
    assert "error" not in chatty


def notices() -> str:
    return "FOR i IN 1..20 LOOP RAISE NOTICE '%', repeat('x', 15000000); END LOOP;"


async def test_a_message_of_hundreds_of_megabytes(host: EngineHost) -> None:
    """A tenant's function raises what it likes, where a server lets it."""
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            for size, name in ((300_000_000, "huge"), (1_000_000, "large")):
                if host.flavour == "postgres":
                    await session.run(
                        f"CREATE FUNCTION {name}() RETURNS int LANGUAGE plpgsql AS"
                        f" $$ BEGIN RAISE EXCEPTION '%', repeat('x', {size}); END $$"
                    )
                else:
                    await session.run(
                        f"CREATE FUNCTION {name}() RETURNS INT DETERMINISTIC BEGIN"
                        " DECLARE told TEXT DEFAULT repeat('x', 60000);"
                        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = told; RETURN 1; END"
                    )
        async with session_of(host, tenant) as session:
            for name in ("huge", "large"):
                await session.run(f"CREATE VIEW {name}_told AS SELECT {name}() AS n")
        found = await outcomes(
            host,
            tenant,
            ["read", "SELECT n FROM huge_told"],
            ["read", "SELECT n FROM large_told"],
            ["write", "INSERT INTO kept SELECT huge()"],
            ["script", "INSERT INTO kept SELECT huge()"],
        )
    assert [each["error"] for each in found] == ["QueryFailed", "QueryFailed", "QueryFailed", "StatementFailed"]
    assert all(len(each["message"]) <= MAX_MESSAGE + 1 for each in found[:3])


async def test_types_with_hundreds_of_thousands_of_attributes(host: EngineHost) -> None:
    """The driver wants to know all of them, and those of the types within them, before it reads a value."""
    if host.flavour != "postgres":
        pytest.skip("there are no such types")
    attributes = ", ".join(f"attribute_{n} int" for n in range(1500))
    make = "DO $$ BEGIN FOR i IN 1..40 LOOP EXECUTE format('CREATE TYPE wide_%s AS ({})', i); END LOOP; END $$"
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with session_of(host, tenant) as session:
            await session.run(make.format(attributes))
            for name, count in (("few", 2), ("many", 40)):
                await session.run(f"CREATE TYPE {name} AS ({', '.join(f'w{n} wide_{n + 1}' for n in range(count))})")
            await session.run("CREATE TABLE kept (n INT)")
        few, many, written, after = await outcomes(
            host,
            tenant,
            ["read", "SELECT NULL::few AS v"],
            ["read", "SELECT NULL::many AS v"],
            ["write", "INSERT INTO kept VALUES (1) RETURNING NULL::many"],
            ["read", "SELECT 1"],
        )
    assert few == after == {"rows": 1, "truncated": False}
    for refused in (many, written):
        assert refused["error"] == "QueryFailed"
        assert "larger than" in refused["message"]


async def test_a_schema_whose_words_are_hundreds_of_megabytes(host: EngineHost) -> None:
    columns = ", ".join(f"c{n} INT" for n in range(300))
    enumeration = ",".join(f"'{n:0>200}'" for n in range(200))
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with session_of(host, tenant) as session:
            await session.run(f"CREATE TABLE wordy ({columns})")
            if host.flavour == "postgres":
                await session.run(
                    "DO $$ BEGIN EXECUTE format('COMMENT ON TABLE wordy IS %L', repeat('x', 5000000));"
                    " FOR i IN 0..54 LOOP EXECUTE format('COMMENT ON COLUMN wordy.%I IS %L', 'c' || i,"
                    " repeat('x', 5000000)); END LOOP; END $$"
                )
            else:
                await session.run(f"ALTER TABLE wordy MODIFY c0 ENUM({enumeration}) COMMENT '{'x' * 1000}'")
        [found] = await outcomes(host, tenant, ["describe"])
    assert found == {"tables": 1, "columns": 300, "longest": found["longest"]}
    assert MAX_COMMENT < found["longest"] <= MAX_COMMENT + MAX_TYPE


async def test_a_schema_with_more_columns_than_are_described(host: EngineHost) -> None:
    """The bound falls into the middle of a table, whose keys and whose own references are among the rest."""
    wide = on(host, 1500, 900)
    names = [f"c{n}" for n in range(wide)]
    count = MAX_COLUMNS // (wide + 1) + 2
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        async with session_of(host, tenant) as session:
            for number in range(count):
                columns = ", ".join(f"{name} INT" for name in names)
                refers = f", FOREIGN KEY (last) REFERENCES t{number - 1:03} (last)" if number else ""
                await session.run(f"CREATE TABLE t{number:03} ({columns}, last INT, PRIMARY KEY (last){refers})")
        async with host.adapter.reading(tenant, PASSWORD, bounded_process.LIMITS) as reading:
            tables = (await reading.describe()).tables
    assert sum(len(table.columns) for table in tables) == MAX_COLUMNS
    assert tables[0].primary_key == ("last",)
    assert [reference.table for reference in tables[1].references] == [tables[0].key]
    assert len(tables[-1].columns) < wide
