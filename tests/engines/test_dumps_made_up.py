"""Databases that nobody thought of: what is loaded from their dumps is equal."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engines.base import Tenant
from tests.engines.filling import fill
from tests.engines.harness import EngineHost, RefusedError, session_of, tenants
from tests.engines.test_dumps import dumped, streamed, tables
from tests.engines.text_dumps import text_of
from tests.servers import RunningServer

pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
_NAME = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
_VALUES: dict[str, st.SearchStrategy[str]] = {
    "int": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "numeric": st.one_of(st.decimals(allow_nan=True, allow_infinity=False).map(str), st.just("-Infinity")),
    "float8": st.floats().map(repr),
    "float4": st.floats(width=32).map(repr),
    "text": _TEXT,
    "bytea": st.binary(max_size=20).map(lambda octets: "\\x" + octets.hex()),
    "text[]": st.lists(_TEXT, max_size=3).map(lambda texts: "{" + ",".join(map(_element, texts)) + "}"),
    "timestamptz": st.datetimes().map(lambda at: at.isoformat() + "+00"),
    "interval": st.timedeltas().map(lambda span: f"{span.days} days {span.seconds} seconds {span.microseconds} us"),
    "bool": st.booleans().map(str),
    "bit varying": st.text("01", max_size=12),
    "jsonb": _TEXT.map(lambda text: f'["{text.encode("unicode_escape").hex()}"]'),
}


def _element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


Table = tuple[str, str, list[tuple[str, str]], list[list[str | None]]]


@st.composite
def made_up(draw: Any) -> list[Table]:
    """Tables: a name, what comes before TABLE, columns with types, rows."""
    made = []
    for name in draw(st.lists(_NAME, min_size=1, max_size=3, unique=True)):
        types = draw(st.lists(st.sampled_from(sorted(_VALUES)), max_size=5))
        names = draw(st.lists(_NAME, min_size=len(types), max_size=len(types), unique=True))
        row = st.tuples(*(st.none() | _VALUES[kind] for kind in types)).map(list)
        rows = draw(st.lists(row, max_size=6)) if types else []
        made.append((name, draw(st.sampled_from(["", "UNLOGGED"])), list(zip(names, types, strict=True)), rows))
    return made


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


async def write(server: RunningServer, tenant: Tenant, made: Sequence[Table]) -> int:
    """Returns the rows that the server took."""
    session = await asyncpg.connect(
        host=server.host, port=server.port, user=tenant.name, password=tenant.password, database=tenant.name
    )
    written = 0
    for name, kind, columns, rows in made:
        described = ", ".join(f"{quoted(column)} {type_}" for column, type_ in columns)
        await session.execute(f"CREATE {kind} TABLE {quoted(name)} ({described})")
        for row in rows:
            values = ", ".join(f"${at}::text::{type_}" for at, (_, type_) in enumerate(columns, 1))
            try:
                await session.execute(f"INSERT INTO {quoted(name)} VALUES ({values})", *row)
            except asyncpg.DataError:
                continue
            written += 1
    await session.close()
    return written


async def hold(host: EngineHost, server: RunningServer, made: Sequence[Table]) -> None:
    async with tenants(host, 2) as [source, target]:
        written = await write(server, source, made)
        chunks, form, told = await dumped(host, source)
        assert sum(tables(told).values()) == written
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        assert await text_of(server, target) == await text_of(server, source)


def made_up_runs(examples: int) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=quiet, derandomize=examples < 100)


@pytest.mark.soak
@made_up_runs(int(os.environ.get("SOAK_DATABASES", "200")))
@given(made=made_up())
async def test_many_made_up_databases_are_loaded_equal(
    host: EngineHost, engine_server: RunningServer, made: list[Table]
) -> None:
    await hold(host, engine_server, made)


@made_up_runs(4)
@given(made=made_up())
async def test_made_up_databases_are_loaded_equal(
    host: EngineHost, engine_server: RunningServer, made: list[Table]
) -> None:
    await hold(host, engine_server, made)


SCHEMAS = sorted(Path(os.environ.get("SOAK_SCHEMAS", "/nonexistent")).glob("*.sql"))
"""Of the folder that SOAK_SCHEMAS names."""


@pytest.mark.soak
@pytest.mark.parametrize("file", SCHEMAS, ids=lambda path: path.stem)
async def test_a_real_schema_is_loaded_equal(host: EngineHost, engine_server: RunningServer, file: Path) -> None:
    written = read(file)
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            try:
                await session.run(written)
            except RefusedError:  # what this server doesn't know
                for statement in written.split(";\n"):
                    with suppress(RefusedError):
                        await session.run(statement)
        superuser = await asyncpg.connect(engine_server.admin_dsn, database=source.name)
        try:
            filled = await fill(superuser, 300)
        finally:
            await superuser.close()
        if not filled:
            pytest.skip("PostgreSQL takes no table of it")
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
        assert await text_of(engine_server, target) == await text_of(engine_server, source)


def read(file: Path) -> str:
    return file.read_text()


@pytest.mark.soak
async def test_ten_thousand_tables_are_loaded_equal(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            for batch in range(100):
                await session.run(
                    f"DO $$ BEGIN FOR n IN 1..100 LOOP EXECUTE format('CREATE TABLE t{batch}_%s (i int)', n);"
                    f" EXECUTE format('INSERT INTO t{batch}_%s VALUES (%s)', n, n); END LOOP; END $$"
                )
        chunks, form, told = await dumped(host, source)
        assert sum(tables(told).values()) == 10_000
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told
