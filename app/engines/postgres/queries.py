"""Sessions for questions on PostgreSQL. The extended protocol refuses more than one statement at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg

from app.engines import json_values
from app.engines.errors import StatementFailed, StatementUncertain
from app.engines.postgres import described, values
from app.engines.postgres.connections import CLOSE_SECONDS
from app.engines.postgres.reading import READING, check_open, check_reading
from app.engines.postgres.wire import metered, too_large
from app.engines.querying import (
    QueryFailed,
    QueryLimits,
    ReadSession,
    ResultColumn,
    RowsRead,
    SchemaDescription,
    WriteSession,
    distinct,
)

_FIRST_BATCH = 16
_MAX_BATCH = 200
"""The number of rows fetched together. The size of the first ones determines how many."""
_AT_ONCE = 64 * 1024
"""From this many octets on, rows are made in a thread: arrays take half a second for each million, in which nothing
else would run."""
_SEARCH_PATH = "public, pg_temp"
MARGIN_SECONDS = 5.0
"""How long we wait for the server to apply its own time limit."""


def settings(limits: QueryLimits, *, read_only: bool) -> dict[str, str]:
    """Settings at a session's start override what the tenant has set for its role. A session that reads begins with
    statements of ours, which may call nothing of the tenant's."""
    return {
        "application_name": "headwater",
        "search_path": "pg_catalog, pg_temp" if read_only else _SEARCH_PATH,
        **READING,
        "default_transaction_read_only": "on" if read_only else "off",
        "statement_timeout": f"{1000 * limits.seconds:.0f}",
        "lock_timeout": f"{1000 * limits.lock_seconds:.0f}",
        "idle_in_transaction_session_timeout": f"{1000 * (limits.seconds + MARGIN_SECONDS):.0f}",
        # A statement whose client has died ends too.
        "client_connection_check_interval": "2000",
        "timezone": "UTC",
        "datestyle": "ISO, YMD",
        "intervalstyle": "iso_8601",
        "extra_float_digits": "1",
    }


class PostgresReadSession(ReadSession):
    def __init__(self, connection: Any, limits: QueryLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def describe(self, known: SchemaDescription | None = None) -> SchemaDescription:
        metered(self._connection).begin(self._limits.max_response_bytes)
        with _failing():
            async with time_limited(self._limits):
                if known is not None and await described.is_still(self._connection, known.version):
                    return known
                version = await described.version(self._connection)
                # A change in between belongs to a version that nobody will look up.
                return SchemaDescription(tables=await described.tables(self._connection), version=version)

    async def read(self, sql: str) -> RowsRead:
        metered(self._connection).begin(self._limits.max_response_bytes)
        with _failing():
            async with time_limited(self._limits):
                # It ends with the session: there is nothing to commit.
                await self._connection.execute(f"BEGIN READ ONLY; SET LOCAL search_path = {_SEARCH_PATH}")
                return await self._rows(*await self._prepared(sql))

    async def _prepared(self, sql: str) -> tuple[Any, Sequence[Any]]:
        """Prepares the statement so that its columns are returned without loss; returns it with those columns."""
        statement = await self._connection.prepare(sql)
        attributes = statement.get_attributes()
        types = {attribute.type.oid: attribute.type for attribute in attributes}
        as_text = [type_ for type_ in types.values() if values.needs_text(type_)]
        if not as_text:
            return statement, attributes
        codecs = self._connection._protocol.get_settings()
        for type_ in as_text:
            # The driver's public way to do so refuses arrays, ranges and composites.
            codecs.add_python_codec(type_.oid, type_.name, type_.schema, [], "scalar", str, str, "text")
        return await self._connection.prepare(sql), attributes

    async def _rows(self, statement: Any, attributes: Sequence[Any]) -> RowsRead:
        names = distinct([attribute.name for attribute in attributes])
        decoders = [values.decoder(attribute.type) for attribute in attributes]
        columns = [ResultColumn(name, attribute.type.name) for name, attribute in zip(names, attributes, strict=True)]
        kept = _RowBuffer(names, decoders, self._limits)
        cursor, batch = await statement.cursor(), _FIRST_BATCH
        while not kept.truncated:
            records = await cursor.fetch(batch)
            if sum(map(_octets, records)) < _AT_ONCE:
                kept.add(records)
            else:
                await asyncio.to_thread(kept.add, records)
            if len(records) < batch:
                break
            batch = kept.next_batch()
        return RowsRead(columns=columns, rows=kept.rows, truncated=kept.truncated)


class _RowBuffer:
    """Rows as JSON, up to the limits."""

    def __init__(self, names: list[str], decoders: list[values.Decode], limits: QueryLimits) -> None:
        self._names = names
        self._decoders = decoders
        self._limits = limits
        self._octets = 0
        self.rows: list[dict[str, Any]] = []
        self.truncated = False

    def add(self, records: Sequence[Any]) -> None:
        """Adds as many as the limits allow. Raises `QueryFailed` if not even the first row fits."""
        for record in records:
            if self.truncated:
                break
            self._add_one(record)

    def next_batch(self) -> int:
        """The number of further rows that fit, if they are like the previous ones."""
        average = self._octets // len(self.rows) + 1
        return max(1, min(_MAX_BATCH, (self._limits.octets - self._octets) // average + 1))

    def _add_one(self, record: Any) -> None:
        # What doesn't fit is not decoded: lists and objects take many times the memory of their text.
        if self._octets + _octets(record) > self._limits.octets:
            self._end()
            return
        row = {
            name: None if value is None else decode(value)
            for name, decode, value in zip(self._names, self._decoders, record, strict=True)
        }
        self._octets += sum(len(name) + json_values.size(value) for name, value in row.items())
        if self._octets > self._limits.octets:
            self._end()
        elif len(self.rows) == self._limits.rows:
            self.truncated = True
        else:
            self.rows.append(row)

    def _end(self) -> None:
        """Ends the rows at one that doesn't fit."""
        if not self.rows:
            raise QueryFailed(f"The first row is larger than {self._limits.octets} octets.")
        self.truncated = True


def _octets(record: Any) -> int:
    """The octets of a row as it came, without small values: rather too few than too many."""
    return sum(len(value) for value in record if isinstance(value, str | bytes))


class PostgresWriteSession(WriteSession):
    def __init__(self, connection: Any, limits: QueryLimits) -> None:
        self._connection = connection
        self._limits = limits

    async def write(self, sql: str) -> int:
        return await self._run([sql])

    async def change(self, statements: Sequence[str]) -> int:
        await self._run(statements)
        return len(statements)

    async def _run(self, statements: Sequence[str]) -> int:
        """Runs all statements or none, in one transaction. Returns the rows that the last one changed."""
        metered(self._connection).begin(self._limits.max_response_bytes)
        with _failing() as progress:
            async with time_limited(self._limits):
                transaction = self._connection.transaction()
                await transaction.start()
                status = ""
                for sql in statements:
                    check_reading(self._connection)
                    statement = await self._connection.prepare(sql)
                    await statement.fetch()
                    status = statement.get_statusmsg()
                    check_open(self._connection)
                progress.committing = True
                await transaction.commit()
        last = status.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else 0


class _Progress:
    committing = False


@contextmanager
def _failing() -> Iterator[_Progress]:
    """Raises the engine's error messages in place of the driver's exceptions."""
    progress = _Progress()
    try:
        yield progress
    except StatementFailed as error:
        raise QueryFailed(str(error)) from error
    except StatementUncertain as error:
        raise QueryFailed(str(error), certain=False) from error
    except asyncpg.PostgresError as error:
        cut = too_large(error)
        if cut is not None:
            raise QueryFailed(str(cut)) from error
        lost = isinstance(error, asyncpg.PostgresConnectionError)
        raise QueryFailed(
            str(error.args[0]), code=error.sqlstate, certain=not (lost and progress.committing)
        ) from error
    except TimeoutError:
        message = "canceling statement due to statement timeout"
        raise QueryFailed(message, code="57014", certain=not progress.committing) from None
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise QueryFailed("The connection was lost.", certain=not progress.committing) from error


@asynccontextmanager
async def time_limited(limits: QueryLimits) -> AsyncIterator[None]:
    """Limits the time of the block. The server's own limits are settings, which a function of the tenant may lift for
    the next statement."""
    async with asyncio.timeout(limits.seconds + MARGIN_SECONDS):
        yield


async def finish(connection: Any) -> None:
    """Closes the connection properly if that works quickly; otherwise the server notices by itself."""
    try:
        await connection.close(timeout=CLOSE_SECONDS)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
