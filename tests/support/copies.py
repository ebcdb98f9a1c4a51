"""Copies of our own database that tests use one after the other.

A copy is some nine hundred files. The one that a test has finished with gets the original's rows again and is the next
test's, unless the test has changed more than rows, or left a session in it: then another copy is made.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from tests.support.store import copy_of, owner_dsn

_MOST_USES = 40
"""Of one copy: rows that are gone keep their place in its files."""
_SESSION_LOOKS, _SESSION_PAUSE_SECONDS = 20, 0.02

# Each change of a table, a function or a right writes a row of a catalog, with the number of its transaction.
_CATALOGS = ("class", "attribute", "constraint", "trigger", "proc", "namespace", "extension")
_SCHEMA = (
    " UNION ALL ".join(f"SELECT concat(count(*), ' ', max(xmin::text::bigint)) FROM pg_{one}" for one in _CATALOGS)
    + """
UNION ALL SELECT concat(datdba, ' ', datacl) FROM pg_database WHERE datname = current_database()
UNION ALL SELECT concat(setrole, ' ', setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
WHERE datname = current_database()
"""
)
_IS_IN_USE = """
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
               AND backend_type = 'client backend')
"""
_TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'migration'
"""
_SEQUENCES = """
SELECT seqrelid::regclass::text, pg_sequence_last_value(seqrelid) FROM pg_sequence
WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""
_EMPTY = f"""
DO $$
DECLARE
    name text;
    has_rows bool;
BEGIN
    FOR name IN {_TABLES} LOOP
        EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO has_rows;
        IF has_rows THEN EXECUTE 'DELETE FROM ' || name; END IF;
    END LOOP;
    PERFORM setval(seqrelid::regclass, seqstart, false) FROM pg_sequence
    WHERE pg_sequence_last_value(seqrelid) IS NOT NULL;
END
$$
"""


@dataclass
class _Original:
    """What a copy has before its first test."""

    schema: list[str]
    rows: dict[str, str]
    """As JSON, by table."""
    sequences: dict[str, int]

    @classmethod
    async def read(cls, connection: asyncpg.Connection) -> "_Original":
        rows = {}
        for (table,) in await connection.fetch(_TABLES):
            if found := await connection.fetchval(f"SELECT json_agg(t) FROM {table} t"):
                rows[table] = found
        return cls(await _schema(connection), rows, dict(await connection.fetch(_SEQUENCES)))

    async def is_restored_in(self, connection: asyncpg.Connection) -> bool:
        """Gives a copy these rows again; False for one that can't be used again."""
        if await _is_in_use(connection) or await _schema(connection) != self.schema:
            return False
        async with connection.transaction():
            # No trigger and no foreign key looks at what follows.
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute(_EMPTY)
            for table, rows in self.rows.items():
                values = f"SELECT * FROM json_populate_recordset(NULL::{table}, $1)"
                await connection.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE {values}", rows)
            for sequence, value in self.sequences.items():
                await connection.execute("SELECT setval($1::text::regclass, $2)", sequence, value)
        return True


class Copies:
    """Of one original, which nobody may be connected to."""

    def __init__(self, dsn: str, admin_dsn: str) -> None:
        self._dsn = dsn
        self._admin_dsn = admin_dsn
        self._original: _Original | None = None
        self._returned: list[tuple[str, int]] = []

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[str]:
        """For the block, a database with the original's tables and rows; its DSN is for the same role."""
        dsn, uses = await self._take()
        yield dsn
        if uses < _MOST_USES:
            self._returned.append((dsn, uses))

    async def _take(self) -> tuple[str, int]:
        while self._returned:
            dsn, uses = self._returned.pop(0)
            if await self._is_as_new(dsn):
                return dsn, uses + 1
        dsn = await copy_of(self._dsn, self._admin_dsn)
        if self._original is None:
            async with self._connected(dsn) as connection:
                self._original = await _Original.read(connection)
        return dsn, 1

    async def _is_as_new(self, dsn: str) -> bool:
        assert self._original is not None
        try:
            async with self._connected(dsn) as connection:
                return await self._original.is_restored_in(connection)
        except (asyncpg.PostgresError, OSError):
            return False  # the test has dropped it, or lets nobody in

    @asynccontextmanager
    async def _connected(self, dsn: str) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(owner_dsn(dsn, self._admin_dsn))
        try:
            yield connection
        finally:
            await connection.close()


async def _schema(connection: asyncpg.Connection) -> list[str]:
    return [row[0] for row in await connection.fetch(_SCHEMA)]


async def _is_in_use(connection: asyncpg.Connection) -> bool:
    """Whether there are sessions that don't end: a server sees a moment later that its client has left."""
    for _ in range(_SESSION_LOOKS):
        if not await connection.fetchval(_IS_IN_USE):
            return False
        await asyncio.sleep(_SESSION_PAUSE_SECONDS)
    return True
