"""Sessions for questions on MySQL and MariaDB: one statement for each call, and no local files."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pymysql

from app.engines import json_values
from app.engines.errors import EngineError, ResponseTooLarge, StatementUncertain
from app.engines.mysql import described, values
from app.engines.mysql.connection import CLOSE_SECONDS, MySQLConnection
from app.engines.mysql.flavours import MARIADB
from app.engines.mysql.reading import state_of
from app.engines.mysql.sessions import QUESTION_MARK
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

MARGIN_SECONDS = 5.0
_SERVER_LOST = {2006, 2013, 2014}
_TIME_LIMIT, _TIME_LIMIT_CODE = "Query execution was interrupted: the time limit was exceeded", "3024"

# The mode in which statements were judged: double quotes enclose strings, backslashes escape.
_SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


async def prepare(connection: MySQLConnection, limits: QueryLimits, *, read_only: bool) -> None:
    """Sets the session's limits and modes. MySQL's time limit covers reads only; other statements are killed from
    another session."""
    mariadb = connection.flavour is MARIADB
    bound = (
        f"max_statement_time = {limits.seconds:g}" if mariadb else f"max_execution_time = {1000 * limits.seconds:.0f}"
    )
    access = "tx_read_only" if mariadb else "transaction_read_only"
    seconds = max(1, round(limits.lock_seconds))
    await connection.run(
        f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00', lock_wait_timeout = {seconds}, "
        f"innodb_lock_wait_timeout = {seconds}, {bound}, {access} = {int(read_only)}"
    )


class _Session:
    def __init__(self, connection: MySQLConnection, end: Callable[[int], Awaitable[None]], limits: QueryLimits) -> None:
        """`end` ends this session on the server, by its number."""
        self._connection = connection
        self._end = end
        self._limits = limits

    def _deadline(self) -> float:
        """When we stop waiting for what begins now, by the event loop's clock."""
        return asyncio.get_running_loop().time() + self._limits.seconds + MARGIN_SECONDS

    @asynccontextmanager
    async def _watched(self, deadline: float) -> AsyncIterator[None]:
        """Kills the statement on the server if we stop waiting for it, which the server wouldn't notice by itself."""
        number = self._connection.thread_id()
        done = False
        try:
            async with asyncio.timeout_at(deadline):
                yield
            done = True
        except pymysql.MySQLError as error:
            done = not (error.args and error.args[0] in _SERVER_LOST)
            raise
        finally:
            if not done:
                self._connection.close()
                await asyncio.shield(asyncio.create_task(self._kill(number)))

    async def _kill(self, number: int) -> None:
        # It has ended, with its server perhaps, or the account is closed, and whoever closed it ended its sessions.
        with contextlib.suppress(OSError, pymysql.MySQLError, EngineError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS + MARGIN_SECONDS):
                await self._end(number)


class MySQLReadSession(_Session, ReadSession):
    def __init__(
        self, connection: MySQLConnection, end: Callable[[int], Awaitable[None]], limits: QueryLimits, database: str
    ) -> None:
        super().__init__(connection, end, limits)
        self._database = database

    async def describe(self, known: SchemaDescription | None = None) -> SchemaDescription:
        self._connection.max_response_bytes = self._limits.max_response_bytes
        with _failing():
            version = await described.version(self._connection, self._database)
            if known is not None and known.version == version:
                return known
            # A change in between belongs to a version that nobody will look up.
            return SchemaDescription(tables=await described.tables(self._connection, self._database), version=version)

    async def read(self, sql: str) -> RowsRead:
        # Rows beyond the limit are never read.
        self._connection.max_response_bytes = self._limits.octets
        with _failing():
            async with self._watched(self._deadline()):
                read, complete = await self._rows(await self._connection.stream(sql))
                if complete:
                    return read
            # The remaining rows are not read; the session is closed instead.
            async with self._abandoned():
                return read

    @asynccontextmanager
    async def _abandoned(self) -> AsyncIterator[None]:
        number = self._connection.thread_id()
        self._connection.close()
        killing = asyncio.create_task(self._kill(number))
        yield
        await asyncio.shield(killing)

    async def _rows(self, cursor: Any) -> tuple[RowsRead, bool]:
        """The rows, and whether the whole response was read."""
        fields = cursor._result.fields if cursor._result and cursor.description else []
        names = distinct([str(_name(field)) for field in fields])
        kinds = [values.described(field) for field in fields]
        columns = [ResultColumn(name, kind) for name, (kind, _) in zip(names, kinds, strict=True)]
        rows: list[dict[str, Any]] = []
        too_large = f"The first row is larger than {self._limits.octets} octets."
        octets = 0
        try:
            while (raw := await cursor.fetchone()) is not None if fields else False:
                row = {
                    name: None if value is None else decode(value)
                    for name, (_, decode), value in zip(names, kinds, raw, strict=True)
                }
                octets += sum(len(name) + json_values.size(value) for name, value in row.items())
                if octets > self._limits.octets and not rows:
                    raise QueryFailed(too_large)
                if octets > self._limits.octets or len(rows) == self._limits.rows:
                    return RowsRead(columns=columns, rows=rows, truncated=True), False
                rows.append(row)
        except ResponseTooLarge:
            # The next row was not even read.
            if not rows:
                raise QueryFailed(too_large) from None
            return RowsRead(columns=columns, rows=rows, truncated=True), False
        return RowsRead(columns=columns, rows=rows, truncated=False), True


class MySQLWriteSession(_Session, WriteSession):
    async def write(self, sql: str) -> int:
        with _failing(writes=True):
            return await self._one(sql, self._deadline())

    async def change(self, statements: Sequence[str]) -> int:
        deadline = self._deadline()
        for executed, sql in enumerate(statements):
            # Each statement commits by itself.
            if executed:
                await self._check_session(executed, sql, deadline)
                _check_time(executed, deadline)
            with _failing(executed, writes=True):
                await self._one(sql, deadline)
        return len(statements)

    async def _check_session(self, executed: int, following: str, deadline: float) -> None:
        """Checks that what was run is permanent, and that the server will read the next statement as it was judged."""
        with _failing(executed, writes=True):
            async with self._watched(deadline):
                state = await state_of(self._connection)
            state.check_lasting()
            reason = state.misread()
            if reason is None and not state.reads(following):
                reason = f"character_set_client is {state.character_set} now, and the next statement isn't ASCII"
        if reason:
            raise QueryFailed(reason, executed=executed)

    async def _one(self, sql: str, deadline: float) -> int:
        async with self._watched(deadline):
            return await self._connection.discard(f"{QUESTION_MARK} {sql}")


def _check_time(executed: int, deadline: float) -> None:
    """Raises `QueryFailed` if the time is over. Called before the next statement is sent: once it is, nobody would know
    what became of it."""
    if asyncio.get_running_loop().time() >= deadline:
        raise QueryFailed(_TIME_LIMIT, code=_TIME_LIMIT_CODE, executed=executed)


def _name(field: Any) -> str:
    name = field.name
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


@contextmanager
def _failing(executed: int = 0, *, writes: bool = False) -> Iterator[None]:
    """Raises the engine's error messages in place of the driver's exceptions."""
    try:
        yield
    except pymysql.MySQLError as error:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        lost = number in _SERVER_LOST or not number
        message = str(error.args[1]) if len(error.args) > 1 else "The connection was lost."
        raise QueryFailed(message, code=str(number or ""), executed=executed, certain=not lost) from error
    except StatementUncertain as error:
        raise QueryFailed(str(error), executed=executed, certain=False) from error
    except ResponseTooLarge as error:
        raise QueryFailed(str(error), executed=executed) from error
    except TimeoutError:
        # A write that nobody waits for any more may have been done in the moment in which its session was ended.
        raise QueryFailed(_TIME_LIMIT, code=_TIME_LIMIT_CODE, executed=executed, certain=not writes) from None
    except OSError as error:
        raise QueryFailed("The connection was lost.", executed=executed, certain=False) from error
