"""One moment of a tenant's database: every table locked against change and removal, then read as it was."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from app.engines.base import Tenant
from app.engines.dumping import MOST_OBJECTS, Content, DumpRefused
from app.engines.pacing import Pace
from app.engines.postgres import freezing
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import fingerprints
from app.engines.postgres.dumps.fingerprints import BlockRange, Sums, Table
from app.engines.postgres.dumps.helpers import Helper
from app.engines.postgres.dumps.processes import READING
from app.engines.postgres.dumps.refusals import logging_in, refused
from app.engines.postgres.errors import LOCK_NOT_AVAILABLE
from app.engines.postgres.quoting import quote_name

NEVER_WHOLE = "tables are made and dropped all the time: there was no moment at which to hold them all"
"""Why there is no dump, when none of several snapshots was whole."""
TOO_MANY_SEQUENCES = f"it has more than {MOST_OBJECTS} sequences, the most that a dump may have"
_BATCH = 50
"""How many tables one statement reads."""
_BLOCKS = 8192
"""How many blocks, of 8 KiB each, one statement reads while a tool reads beside it."""
_LARGE_OBJECTS = 1000
_FEW_TABLES, _FEW_BLOCKS, _FEW_LARGE_OBJECTS = 5, 128, 10
"""The same, where the pace is slow."""
_LOCKED_AT_ONCE = 500
_STATEMENT_SECONDS = 6 * 3600
"""The time limit for the fingerprint of one table, or of some."""
_SIGN_OF_LIFE_SECONDS = 60
_LOCKED_PERCENT = 40
"""How full a dump may make the server's lock table, which all tenants share: what is in use already counts."""
_ROOM = """
SELECT current_setting('max_locks_per_transaction')::bigint * (
           current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint
       ) AS capacity, (SELECT count(*) FROM pg_locks WHERE NOT fastpath) AS used
"""
_MOMENT = """
SELECT pg_export_snapshot() AS snapshot, clock_timestamp() AS at,
       CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_lsn()::text END AS position
"""


class Moment(msgspec.Struct, frozen=True):
    snapshot: str
    at: datetime
    position: str | None


class Snapshot:
    """An open session in its transaction. Its methods are called one after the other."""

    def __init__(self, session: Any, host: str, own_schema: str) -> None:
        self._session = session
        self._host = host
        self._turn = asyncio.Lock()
        self.own_schema = own_schema
        """The name of our own schema in the database, which no dump holds; empty if there is none."""
        self.tables: list[Table] = []
        self.moment: Moment
        self._most = 0

    async def begin(self, helper: Helper) -> None:
        """Locks all tables, and then takes the snapshot: one taken first would find a table empty that was emptied or
        rewritten in between. Raises `DumpRefused`."""
        self._most = await self._room()
        await self._list(helper)
        await self._session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await self._lock(self.tables)
        row = await self._session.fetchrow(_MOMENT)
        self.moment = Moment(row["snapshot"], row["at"], row["position"])

    async def is_whole(self, helper: Helper) -> bool:
        """Lists the tables again, and returns whether the locked ones are all tables of the snapshot's moment, before
        which some may have been made or dropped, and whether our own schema is as it was: a freeze or its end may have
        come in between. Call it before `contents`. Raises `DumpRefused`."""
        locked = _named(self.tables)
        with refused(self._host):
            await self._refuse_parts_of_extensions()
            await self._list(helper)
            own_schema = await freezing.schema_of(self._session, helper.administrator) or ""
        return _named(self.tables) == locked and own_schema == self.own_schema

    async def contents(self, sequences: Sequence[Content] | None = None, pace: Pace | None = None) -> list[Content]:
        """Everything that the snapshot holds. `sequences` are known if the dump has described them: their values belong
        to no moment. With a `pace` tables are read piece by piece. Raises `DumpRefused`."""
        async with self._turn:
            with refused(self._host):
                found = [
                    *await self._fingerprint_tables(pace),
                    *await self._large_objects(pace or Pace()),
                    *(sequences if sequences is not None else await self._sequences()),
                    *await self._others(),
                ]
        return fingerprints.ordered(found)

    async def keep_alive(self) -> None:
        """Keeps the session alive until it is cancelled: a session that does nothing in its transaction for long is
        ended."""
        while True:
            await asyncio.sleep(_SIGN_OF_LIFE_SECONDS)
            async with self._turn:
                await self._session.execute("SELECT 1")

    def end(self) -> None:
        """Ends the session. Repeatable."""
        self._session.terminate()

    async def _room(self) -> int:
        """How many tables may be locked."""
        room = await self._session.fetchrow(_ROOM)
        free: int = room["capacity"] * _LOCKED_PERCENT // 100 - room["used"]
        return max(0, min(MOST_OBJECTS, free))

    async def _list(self, helper: Helper) -> None:
        """Lists the tables. Raises `DumpRefused`, also if there are more than may be locked: they aren't even read
        then."""
        rows = await self._session.fetch(fingerprints.TABLES, self.own_schema, self._most + 1)
        if len(rows) > self._most:
            raise DumpRefused(
                f"it has more than {self._most} tables, which is more than the host has room for in its lock table "
                "(max_locks_per_transaction), or than a dump may have"
            )
        self.tables = [msgspec.convert(dict(row), Table) for row in rows]
        secured = [table.qualified for table in self.tables if table.secured]
        if secured and not helper.reads_everything:
            raise DumpRefused(
                f"{secured[0]} has row level security that holds for its owner too (FORCE), and this host's "
                "administrator can't make accounts that read past it: it needs BYPASSRLS"
            )

    async def _refuse_parts_of_extensions(self) -> None:
        added = await self._session.fetchrow(fingerprints.ADDED_TO_EXTENSIONS)
        if added is not None:
            raise DumpRefused(
                f"{added['part']} was added to the extension {added['extension']}, of which no dump holds the parts: "
                f"ALTER EXTENSION {added['extension']} DROP ... makes it one of the database's own again"
            )

    async def _lock(self, tables: Sequence[Table]) -> None:
        for batch in _batches(tables, _LOCKED_AT_ONCE):
            names = ", ".join(f"ONLY {table.qualified}" for table in batch)
            try:
                await self._session.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
            except asyncpg.LockNotAvailableError as error:
                raise DumpRefused(
                    f"one of the tables {batch[0].qualified} to {batch[-1].qualified} is held by an exclusive lock",
                    code=LOCK_NOT_AVAILABLE,
                ) from error

    async def _fingerprint_tables(self, pace: Pace | None) -> list[Content]:
        found = []
        for batch in _batches([table for table in self.tables if table.has_rows]):
            described = await self._session.fetch(fingerprints.COLUMNS, [table.oid for table in batch])
            columns = {row["oid"]: row["columns"] for row in described}
            blocks = {row["oid"]: row["blocks"] for row in described}
            for portion in _portions(batch, blocks, pace):
                last = blocks.get(portion[0].oid, 0) if len(portion) == 1 else 0
                for table, sums in zip(portion, await self._sums(portion, columns, last, pace), strict=True):
                    named = columns.get(table.oid, ())
                    found.append(fingerprints.table_content(table, named, sums.rows, sums.one, sums.two))
        return found

    async def _sums(
        self, tables: Sequence[Table], columns: Mapping[int, Sequence[str]], blocks: int, pace: Pace | None
    ) -> Sequence[Sums]:
        """The sums of each table. A table of many `blocks` is read piece by piece."""
        found = [Sums() for _ in tables]
        start: int | None = 0
        while start is not None:
            end = start + _most(pace)[1]
            piece = BlockRange(start, end if end < blocks else None)
            asked = fingerprints.fingerprint_of(tables, columns, None if piece == BlockRange(0, None) else piece)
            async with (pace or Pace()).step():
                answer = await self._copied(asked)
            for number, rows, one, two in fingerprints.sums_in(answer):
                found[number].add(rows, one, two)
            start = piece.end
        return found

    async def _copied(self, query: str) -> bytes:
        """The rows of a query, as text. The driver has the server plan any other at a distance from reading it, which
        costs as much again for one that reads many tables."""
        answer = bytearray()

        async def keep(piece: bytes) -> None:
            answer.extend(piece)

        await self._session.copy_from_query(query, output=keep)
        return bytes(answer)

    async def _large_objects(self, pace: Pace) -> list[Content]:
        rows, one, two, reached = 0, 0, 0, 0
        while True:
            async with pace.step():
                most = _FEW_LARGE_OBJECTS if pace.slow else _LARGE_OBJECTS
                batch = await self._session.fetchrow(fingerprints.LARGE_OBJECTS, reached, most)
            if not batch["rows"]:
                break
            rows, reached = rows + batch["rows"], batch["reached"]
            one, two = one + int(batch["one"]), two + int(batch["two"])
        return [fingerprints.large_objects_content(rows, one, two)] if rows else []

    async def _sequences(self) -> list[Content]:
        found = []
        rows = await self._session.fetch(fingerprints.SEQUENCES, self.own_schema, MOST_OBJECTS + 1)
        if len(rows) > MOST_OBJECTS:
            raise DumpRefused(TOO_MANY_SEQUENCES)
        for row in rows:
            name = f"{quote_name(row['schema'])}.{quote_name(row['name'])}"
            last, called = await self._session.fetchrow(f"SELECT last_value, is_called FROM {name}")  # noqa: S608
            found.append(fingerprints.sequence_content(row["schema"], row["name"], str(last), called))
        return found

    async def _others(self) -> list[Content]:
        rows = await self._session.fetch(fingerprints.OTHERS, self.own_schema)
        return [fingerprints.other_content(row["kind"], row["rows"], row["fingerprint"]) for row in rows]


@asynccontextmanager
async def snapshot(
    connections: PostgresConnections, tenant: Tenant, helper: Helper, *, alone: bool
) -> AsyncIterator[Snapshot]:
    """A session of the helper, with its snapshot taken. `alone`: no tool reads beside it. Raises `DumpRefused`;
    `HostUnavailable`."""
    with logging_in(connections.host):
        session = await connections.unprivileged(
            helper.name,
            helper.password,
            database=tenant.name,
            server_settings=_settings(alone=alone),
            command_timeout=None,
        )
    keeping = None
    try:
        with refused(connections.host):
            own_schema = await freezing.schema_of(session, helper.administrator) or ""
            taken = Snapshot(session, connections.host, own_schema)
            await taken.begin(helper)
        keeping = asyncio.create_task(taken.keep_alive())
        yield taken
    finally:
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        session.terminate()


def _named(tables: Iterable[Table]) -> set[tuple[int, str]]:
    return {(table.oid, table.qualified) for table in tables}


def _batches(tables: Sequence[Table], size: int = _BATCH) -> Iterator[Sequence[Table]]:
    for at in range(0, len(tables), size):
        yield tables[at : at + size]


def _portions(tables: Sequence[Table], blocks: Mapping[int, int], pace: Pace | None) -> Iterator[Sequence[Table]]:
    """The tables in portions: each is read by one statement, or is one table that is read by several."""
    portion, size = list[Table](), 0
    for table in tables:
        most, room = _most(pace)
        if portion and (len(portion) >= most or size + blocks.get(table.oid, 0) > room):
            yield portion
            portion, size = [], 0
        portion.append(table)
        size += blocks.get(table.oid, 0)
    if portion:
        yield portion


def _most(pace: Pace | None) -> tuple[int, int]:
    """How many tables, and how many blocks, one statement reads. Without a pace all blocks: a server reads a part of a
    table by one process, and the whole of it by several."""
    if pace is None:
        return _BATCH, sys.maxsize
    return (_FEW_TABLES, _FEW_BLOCKS) if pace.slow else (_BATCH, _BLOCKS)


def _settings(*, alone: bool) -> dict[str, str]:
    of_time = {"statement_timeout": f"{_STATEMENT_SECONDS}s"}
    # Whoever waits for a restored copy waits for this, and nobody works in it yet.
    at_once = {"max_parallel_workers_per_gather": "1"} if alone else {}
    return fingerprints.SESSION_SETTINGS | READING | of_time | at_once
