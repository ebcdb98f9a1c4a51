"""Databases of earlier releases come to this version's tables with all their data."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from packaging.version import Version
from piccolo.table import create_db_tables

from app.cli.secrets import SEALED
from app.core.secrets import SecretBox, SecretLocation
from app.store.migrate import MigrationFailed, migrate
from app.store.session import fetch
from app.store.tables import TABLES
from tests.cli.command import Headwater
from tests.servers import RunningServer
from tests.store import releases
from tests.support.store import database_name, new_database, store

_INTENDED: dict[str, dict[str, str]] = {"0.1.0": {}}
"""For each release, the tables (`table`) and columns (`table.column`) whose content is meant to differ since then, and
why. All else has to be there, as it was."""

_NOT_YET: dict[str, set[str]] = {
    "0.1.0": {
        "backups.wrapped_key",
        "credential_rotations.password_sealed",
        "credential_rotations.previous_sealed",
        "database_users.next_sealed",
        "database_users.password_sealed",
    }
}
"""The sealed columns that a release did not have."""

_COLUMNS = """
SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
       || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
     AND NOT c.relispartition
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'migration'
"""
_KEYS = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f') AND conrelid <> 'migration'::regclass
  AND conrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND NOT relispartition)
"""
_INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'migration'"

Contents = dict[str, dict[str, dict[str, Any]]]
"""Of each table, by the row's id, the values by their columns."""


async def rows(dsn: str, sql: str) -> list[Any]:
    """The first column."""
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def execute(dsn: str, sql: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def contents(dsn: str) -> Contents:
    tables = await rows(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migration'")
    texts = {table: await rows(dsn, f'SELECT to_jsonb(t)::text FROM "{table}" t') for table in tables}
    read = {table: [json.loads(text) for text in lines] for table, lines in texts.items()}
    return {table: {str(row["id"]): row for row in lines} for table, lines in read.items()}


def lost(before: Contents, after: Contents, intended: dict[str, str]) -> set[str]:
    """Tables, rows and columns of `before` that are gone, or otherwise, in `after`."""
    found: set[str] = set()
    for table, old_rows in before.items():
        if table in intended:
            continue
        new_rows = after.get(table, {})
        found |= {f"{table} {row}" for row in old_rows.keys() - new_rows.keys()}
        for row in old_rows.keys() & new_rows.keys():
            old, new = old_rows[row], new_rows[row]
            found |= {f"{table}.{name}" for name in old if name not in new or old[name] != new[name]}
    return found - intended.keys()


async def undeclared(dsn: str, declared_dsn: str) -> set[str]:
    """How the tables of a migrated database differ from what their classes declare, which the other database was made
    of. Indexes beyond those and partitioned tables, which migrations add by SQL, are none of it."""
    found: set[str] = set()
    for sql in (_COLUMNS, _KEYS):
        found |= set(await rows(dsn, sql)) ^ set(await rows(declared_dsn, sql))
    return found | set(await rows(declared_dsn, _INDEXES)) - set(await rows(dsn, _INDEXES))


@pytest_asyncio.fixture
async def empty_dsn(control_server: RunningServer) -> str:
    return await new_database(control_server.admin_dsn)


@pytest_asyncio.fixture(scope="module")
async def declared_template(control_server: RunningServer) -> str:
    dsn = await new_database(control_server.admin_dsn)
    async with store(dsn):
        await create_db_tables(*TABLES)
        await fetch("CREATE TABLE migration ()")
    return dsn


@pytest_asyncio.fixture
async def declared_dsn(control_server: RunningServer, declared_template: str) -> str:
    """The tables as their classes declare them, made without migrations."""
    return await new_database(control_server.admin_dsn, template=database_name(declared_template))


@pytest_asyncio.fixture(scope="module")
async def newest_release(control_server: RunningServer) -> str:
    dsn = await new_database(control_server.admin_dsn)
    releases.load(dsn, releases.releases()[-1])
    return dsn


@pytest.mark.parametrize("release", releases.releases())
async def test_an_upgrade_keeps_the_data_and_ends_at_this_schema(
    release: str, empty_dsn: str, control_admin_dsn: str
) -> None:
    releases.load(empty_dsn, release)
    before = await contents(empty_dsn)
    assert [table for table, there in before.items() if not there] == [], "a table without data proves nothing"
    async with store(empty_dsn):
        await migrate()
    assert lost(before, await contents(empty_dsn), _INTENDED[release]) == set()
    assert releases.schema(empty_dsn) == releases.schema(control_admin_dsn)


@pytest.mark.parametrize("release", releases.releases())
async def test_sealed_values_open_after_an_upgrade(release: str, empty_dsn: str) -> None:
    """They are bound to the names of their table and column: a migration that renames one has to seal them anew."""
    releases.load(empty_dsn, release)
    box = SecretBox.from_setting(releases.SECRET_KEYS)
    async with store(empty_dsn):
        await migrate()
        for column in SEALED:
            values = await fetch(
                f"SELECT {column.row} AS place, s.{column.column} AS sealed FROM {column.table} s"
                f" WHERE s.{column.column} IS NOT NULL"
            )
            assert values or column.name in _NOT_YET[release], column.name
            for value in values:
                box.open(value["sealed"], SecretLocation(column.table, column.column, value["place"]))


def test_every_release_has_its_database() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert released == releases.releases()[::-1]
    newest, this = Version(released[0]), Version(version("headwater"))
    assert this == newest or (this > newest and this.is_devrelease), "what is made after a release has another name"


async def test_the_tables_are_as_they_are_declared(control_admin_dsn: str, declared_dsn: str) -> None:
    """Where this fails, a table was changed without a migration; docs/testing.md says how to write one."""
    assert await undeclared(control_admin_dsn, declared_dsn) == set()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE teams ADD COLUMN colour text",
        "ALTER TABLE teams DROP COLUMN tier",
        "ALTER TABLE teams ALTER COLUMN tier SET DEFAULT 'pro'",
        "ALTER TABLE teams ALTER COLUMN tier DROP NOT NULL",
        "ALTER TABLE teams ALTER COLUMN tier TYPE varchar(9)",
        "ALTER TABLE teams ADD UNIQUE (name)",
        "CREATE INDEX teams_by_name ON teams (name)",
        "CREATE TABLE more (id bigserial PRIMARY KEY)",
    ],
)
async def test_a_change_without_a_migration_is_seen(control_admin_dsn: str, declared_dsn: str, change: str) -> None:
    await execute(declared_dsn, change)
    assert await undeclared(control_admin_dsn, declared_dsn) != set()


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("DELETE FROM webhook_attempts WHERE id = 1", "webhook_attempts 1"),
        ("UPDATE users SET name = '' WHERE id = 1", "users.name"),
        ("ALTER TABLE teams DROP COLUMN tier", "teams.tier"),
        ("ALTER TABLE databases RENAME password_sealed TO password", "databases.password_sealed"),
        ("DROP TABLE installation", "installation"),
    ],
)
async def test_a_loss_is_seen(control_server: RunningServer, newest_release: str, change: str, missing: str) -> None:
    dsn = await new_database(control_server.admin_dsn, template=database_name(newest_release))
    before = await contents(dsn)
    await execute(dsn, change)
    assert any(loss.startswith(missing) for loss in lost(before, await contents(dsn), {}))


async def _before_release(dsn: str, migrations: int) -> None:
    """A database as it was before 0.1.0: other migrations had run, and two things were there that nothing used."""
    releases.load(dsn, "0.1.0")
    await execute(
        dsn,
        f"""
        DELETE FROM migration;
        INSERT INTO migration (name, app_name)
        SELECT '2026-11-22T04:00:00:' || to_char(n, 'FM000000'), 'headwater' FROM generate_series(1, {migrations}) n;
        CREATE INDEX webhook_deliveries_over ON webhook_deliveries (finished_at) WHERE status <> 'pending';
        CREATE FUNCTION take_question_place(
            bigint, bigint, bigint, text, text, double precision, double precision, integer
        ) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'
        """,
    )


async def test_a_database_from_before_the_first_release_moves(empty_dsn: str, control_admin_dsn: str) -> None:
    await _before_release(empty_dsn, migrations=35)
    before = await contents(empty_dsn)
    async with store(empty_dsn):
        await migrate()
        await migrate()
    assert lost(before, await contents(empty_dsn), _INTENDED["0.1.0"]) == set()
    assert releases.schema(empty_dsn) == releases.schema(control_admin_dsn)


async def test_a_database_from_amid_the_earlier_migrations_is_refused(empty_dsn: str) -> None:
    await _before_release(empty_dsn, migrations=34)
    before = releases.dump(empty_dsn)
    async with store(empty_dsn):
        with pytest.raises(MigrationFailed, match=r"34 of the 35 migrations .* commit 0b92163"):
            await migrate()
    assert releases.dump(empty_dsn) == before
    command = Headwater({"CONTROL_DSN": empty_dsn, "SECRET_KEYS": releases.SECRET_KEYS})
    assert "commit 0b92163" in await command.refusal("teams", "list")
