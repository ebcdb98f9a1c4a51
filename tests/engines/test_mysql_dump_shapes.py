"""Databases of every type and value that tenants make, and real schemas: dumped, loaded, equal.

`TEST_SCHEMAS` names a folder with schema files in `mysql`, for the longer form.
"""

import difflib
import json
import os
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.engines.base import Tenant
from tests.engines.harness import EngineHost, RefusedError, Session, session_of, tenants
from tests.engines.mysql_dumping import dumped, each, skip_without_tool

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")
SCHEMAS = sorted(Path(os.environ.get("TEST_SCHEMAS", "/nonexistent")).glob("mysql/*.sql"))
_OF_DATABASES = re.compile(r"(?i)(?:/\*.*\*/\s*)?(?:create database|drop database|use)\b")
CHARACTER_SETS = ("utf8mb4", "utf8mb3", "latin1", "ascii", "cp932", "gbk", "big5", "utf16", "utf32", "cp1251", "koi8r")


@pytest.fixture(autouse=True)
async def _tool(host: EngineHost) -> None:
    await skip_without_tool(host)


def _text(value: str) -> str:
    return "_utf8mb4 0x" + (value.encode().hex() or "''").replace("''", "") if value else "''"


def _octets(value: bytes) -> str:
    return f"x'{value.hex()}'"


def _numbers(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(str)


def _doubles(width: Literal[32, 64]) -> st.SearchStrategy[str]:
    return st.floats(allow_nan=False, allow_infinity=False, width=width).map(lambda value: f"'{value!r}'")


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "BIGINT UNSIGNED": _numbers(0, 2**64 - 1),
    "SMALLINT(5) UNSIGNED ZEROFILL": _numbers(0, 65_535),
    "DECIMAL(30, 10)": st.decimals(-(10**15), 10**15, places=10).map(str),
    "FLOAT": _doubles(32),
    "FLOAT(10, 3)": st.integers(-(10**6), 10**6).map(lambda number: str(number / 1000)),
    "DOUBLE": _doubles(64),
    "BIT(17)": _numbers(0, 2**17 - 1),
    "DATE": st.dates().map(lambda day: f"'{day.isoformat()}'") | st.sampled_from(["'0000-00-00'", "'2021-02-31'"]),
    "DATETIME(6)": st.datetimes().map(lambda moment: f"'{moment.isoformat(' ')}'"),
    "TIME(3)": st.times().map(lambda moment: f"'-{moment.isoformat()}'"),
    "YEAR": _numbers(1901, 2155) | st.just("0"),
    "BINARY(6)": st.binary(max_size=6).map(_octets),
    "VARBINARY(20)": st.binary(max_size=20).map(_octets),
    "LONGBLOB": st.binary(max_size=300).map(_octets),
    "ENUM('a', '', 'c''d')": _numbers(0, 3),
    "SET('p', 'q', 'r')": _numbers(0, 7),
    "JSON": st.recursive(st.integers(-9, 9) | _WORDS | st.none(), lambda inner: st.lists(inner, max_size=2)).map(
        lambda value: _text(json.dumps(value))
    ),
    **{f"VARCHAR(40) CHARACTER SET {name}": _WORDS.map(_text) for name in CHARACTER_SETS},
    **{f"CHAR(9) CHARACTER SET {name}": st.binary(max_size=4).map(_octets) for name in ("latin1", "binary")},
    "LONGTEXT": _WORDS.map(_text),
}


@st.composite
def databases(draw: st.DrawFn) -> list[str]:
    """Statements that make some tables with rows; values that don't fit are stored as the server makes them fit."""
    statements = ["SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"]
    for number in range(draw(st.integers(1, 3))):
        kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=8))
        key = draw(st.sampled_from(["", ", id INT AUTO_INCREMENT PRIMARY KEY", ", id INT AUTO_INCREMENT UNIQUE"]))
        name = draw(st.sampled_from(["t", "T`x ", "line\n", "ü;--", "/*!"])).strip() + str(number)
        table = "`" + name.replace("`", "``") + "`"
        columns = ", ".join(f"c{index} {kind}" for index, kind in enumerate(kinds))
        statements.append(f"CREATE TABLE {table} ({columns}{key})")
        names = ", ".join(f"c{index}" for index in range(len(kinds)))
        for _ in range(draw(st.integers(0, 4))):
            row = ", ".join(draw(VALUES[kind] | st.just("NULL")) for kind in kinds)
            statements.append(f"INSERT INTO {table} ({names}) VALUES ({row})")
    return statements


async def check_equal(host: EngineHost, source: Tenant, target: Tenant) -> None:
    """By what both hold, and by a second dump, of the copy."""
    chunks, form, told = await dumped(host, source)
    await host.adapter.load(target, form, each(chunks))
    assert await host.adapter.contents(target) == told
    again, _, _ = await dumped(host, target)
    first, second = (
        # MySQL names the character set of a column only if that was said, and in a dump it is.
        re.sub(rb" CHARACTER SET \w+(?= COLLATE)", b"", b"".join(text).replace(tenant.name.encode(), b"ours"))
        for text, tenant in ((chunks, source), (again, target))
    )
    assert first == second, "\n".join(
        difflib.unified_diff(first.decode(errors="replace").split("\n"), second.decode(errors="replace").split("\n"))
    )


async def made_and_compared(host: EngineHost, statements: list[str]) -> None:
    async with tenants(host, 2) as [source, target], session_of(host, source) as session:
        for statement in statements:
            if statement.startswith("INSERT"):
                with suppress(RefusedError):  # a value that even a lenient server doesn't take
                    await session.run(statement)
            else:
                await session.run(statement)
        await check_equal(host, source, target)


def examples(count: int) -> list[list[str]]:
    """The same in every run. Collected first: hypothesis runs no test on an event loop of somebody else's."""
    found: list[list[str]] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(databases())
    def collect(statements: list[str]) -> None:
        found.append(statements)

    collect()
    return found


async def test_databases_of_every_type_come_back_equal(host: EngineHost) -> None:
    for statements in examples(4):
        await made_and_compared(host, statements)


@pytest.mark.soak
async def test_many_databases_of_every_type_come_back_equal(host: EngineHost) -> None:
    for statements in examples(int(os.environ.get("TEST_EXAMPLES", "300"))):
        await made_and_compared(host, statements)


async def fill(session: Session, database: str, rows: int) -> None:
    """Rows of generated values in every table, as far as its constraints let them in."""
    await session.run("SET SESSION foreign_key_checks = 0, sql_mode = ''")
    tables = await session.run("SHOW FULL TABLES WHERE table_type = 'BASE TABLE'")
    for table, _ in tables:
        described = await session.run(
            "SELECT column_name, data_type FROM information_schema.columns "
            f"WHERE table_schema = '{database}' AND table_name = '{table}' AND generation_expression = ''"
        )
        chosen = random.Random(table)
        for number in range(rows):
            names = ", ".join(f"`{name}`" for name, _ in described)
            values = ", ".join(_generated(chosen, str(kind), number) for _, kind in described)
            await session.run(f"INSERT IGNORE INTO `{table}` ({names}) VALUES ({values})")


def _generated(chosen: random.Random, kind: str, number: int) -> str:
    if "int" in kind or kind in ("decimal", "float", "double", "bit", "year"):
        return str(number + chosen.randrange(100) * 1000)
    if "date" in kind or "time" in kind:
        return f"'20{chosen.randrange(10, 30)}-0{chosen.randrange(1, 10)}-1{chosen.randrange(10)} 01:02:03'"
    if "blob" in kind or "binary" in kind:
        return f"x'{chosen.randbytes(12).hex()}'"
    return f"'{number} {chosen.getrandbits(64):x}'" if kind != "json" else f"'[{number}]'"


@pytest.mark.soak
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.stem)
async def test_a_real_schema_with_rows_comes_back_equal(host: EngineHost, schema: Path) -> None:
    text = re.sub(r"(?m)^\s*(?:--|#).*$", "", read(schema))
    statements = [part.strip() for part in re.split(r";\s*\n", text) if part.strip()]
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            for statement in statements:
                if not _OF_DATABASES.match(statement):
                    with suppress(RefusedError):  # what this server doesn't know
                        await session.run(statement.rstrip(";"))
            if not await session.run("SHOW TABLES"):
                pytest.skip(f"{host.flavour} takes no table of it")
            await fill(session, source.name, 30)
        await check_equal(host, source, target)


@pytest.mark.soak
async def test_ten_thousand_tables_come_back_equal(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            for number in range(10_000):
                await session.run(f"CREATE TABLE t{number} (i INT PRIMARY KEY)")
                await session.run(f"INSERT INTO t{number} VALUES ({number})")
        await check_equal(host, source, target)


def read(path: Path) -> str:
    return path.read_text(errors="replace")
