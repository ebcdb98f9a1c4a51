"""Migrations expand: the release before works on the tables of this version, while both run.

What no release uses any more may go with the next one, whose tests compare with a release that is newer.
"""

import asyncpg
import pytest
import pytest_asyncio

from app.store.migrate import migrate
from tests.servers import RunningServer
from tests.store import releases
from tests.support.store import database_name, execute_at, new_database, store

_HERE = "relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
_COLUMNS = f"""
SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND {_HERE}
WHERE a.attnum > 0 AND NOT a.attisdropped
"""
_FUNCTIONS = """
SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ') ' || pg_get_function_result(oid) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace
"""
_TABLES = f"SELECT relname FROM pg_class WHERE {_HERE}"
_NOT_NULL = f"""
SELECT c.relname || '.' || a.attname, a.atthasdef OR a.attidentity <> ''
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND {_HERE}
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
"""
"""Columns that take no NULL, and whether an INSERT may leave them out."""
_RULES = f"""
SELECT c.relname || ': ' || pg_get_constraintdef(k.oid), ARRAY(SELECT c.relname || '.' || a.attname FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey))
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid AND {_HERE} WHERE k.contype IN ('u', 'c', 'x', 'f', 'p')
UNION ALL
SELECT c.relname || ': ' || pg_get_indexdef(i.indexrelid), ARRAY(SELECT c.relname || '.' || a.attname
       FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey))
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid AND {_HERE} WHERE i.indisunique
"""
"""Constraints and unique indexes, each with its columns."""


async def narrowed(old_dsn: str, new_dsn: str) -> set[str]:
    """What statements that the old tables take could fail on with the new ones."""
    old, new = await asyncpg.connect(old_dsn), await asyncpg.connect(new_dsn)
    try:
        gone = [
            {row[0] for row in await old.fetch(sql)} - {row[0] for row in await new.fetch(sql)}
            for sql in (_COLUMNS, _FUNCTIONS)
        ]
        tables = {row[0] for row in await old.fetch(_TABLES)}
        columns = {row[0].partition(" ")[0] for row in await old.fetch(_COLUMNS)}
        were, are = [dict(await one.fetch(_NOT_NULL)) for one in (old, new)]
        rules = {row[0]: set(row[1]) for row in await new.fetch(_RULES)}
        known = {row[0] for row in await old.fetch(_RULES)}
    finally:
        await old.close()
        await new.close()
    stricter = {rule for rule, of in rules.items() if rule not in known and of <= columns}
    null = columns & (are.keys() - were.keys())
    required = {column for column, optional in are.items() if not optional and were.get(column, True)}
    return set().union(*gone, stricter, null, (column for column in required if column.partition(".")[0] in tables))


@pytest_asyncio.fixture(scope="module")
async def released_dsn(control_server: RunningServer) -> str:
    """The newest release's database."""
    dsn = await new_database(control_server.admin_dsn)
    releases.load(dsn, releases.releases()[-1])
    return dsn


@pytest_asyncio.fixture
async def changed_dsn(control_server: RunningServer, released_dsn: str) -> str:
    """A copy of it, to be changed."""
    return await new_database(control_server.admin_dsn, template=database_name(released_dsn))


async def test_the_newest_release_works_on_these_tables(released_dsn: str, changed_dsn: str) -> None:
    async with store(changed_dsn):
        await migrate()
    assert await narrowed(released_dsn, changed_dsn) == set()


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE webhook_attempts CASCADE",
        "ALTER TABLE teams DROP COLUMN tier CASCADE",
        "ALTER TABLE teams RENAME tier TO plan",
        "ALTER TABLE teams ALTER COLUMN tier TYPE varchar(9)",
        "ALTER TABLE users ADD COLUMN colour text NOT NULL DEFAULT ''; ALTER TABLE users ALTER colour DROP DEFAULT",
        "TRUNCATE databases CASCADE; ALTER TABLE databases ALTER team_id SET NOT NULL, ALTER team_id SET DEFAULT 1",
        "ALTER TABLE teams ALTER COLUMN tier DROP DEFAULT",
        "ALTER TABLE teams ADD UNIQUE (name)",
        "CREATE UNIQUE INDEX one_name ON teams (name)",
        "ALTER TABLE teams ADD CHECK (length(name) < 10000)",
    ],
)
async def test_a_contraction_is_seen(released_dsn: str, changed_dsn: str, change: str) -> None:
    await execute_at(changed_dsn, change)
    assert await narrowed(released_dsn, changed_dsn) != set()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE more (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE)",
        "ALTER TABLE teams ADD COLUMN colour text",
        "ALTER TABLE teams ADD COLUMN colour text NOT NULL DEFAULT 'blue'",
        "ALTER TABLE teams ALTER COLUMN name DROP NOT NULL",
        "CREATE INDEX teams_by_name ON teams (name)",
    ],
)
async def test_an_expansion_is_none(released_dsn: str, changed_dsn: str, change: str) -> None:
    await execute_at(changed_dsn, change)
    assert await narrowed(released_dsn, changed_dsn) == set()
