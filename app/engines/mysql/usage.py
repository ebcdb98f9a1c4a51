"""Measuring tenants on a server: bytes on its disk, and sessions."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pymysql
import structlog

from app.engines.base import SURVEY_SECONDS, EngineError, Measuring, Usage
from app.engines.mysql import shared_files
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import LOCK_SECONDS
from app.engines.mysql.errors import NO_PRIVILEGE_ON_TABLE, TIMED_OUT, ignored, translated
from app.engines.mysql.sessions import LOGGING_IN
from app.engines.naming import HELPER_SEPARATOR

_DATABASES = "SELECT schema_name, 0 FROM information_schema.schemata WHERE schema_name IN %s"
# Selected by name alone, so that only the dictionary is read; the sizes of the few that are found cost an open each.
_OTHER_ENGINES = """
SELECT DISTINCT table_schema, 0 FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
"""
_OTHER_SIZES = """
SELECT table_schema, SUM(COALESCE(data_length, 0) + COALESCE(index_length, 0)) FROM information_schema.tables
WHERE table_schema IN %s AND table_type = 'BASE TABLE' AND engine <> 'InnoDB' GROUP BY 1
"""

_SESSIONS = f"""
SELECT SUBSTRING_INDEX(user, %s, 1), id FROM information_schema.processlist
WHERE SUBSTRING_INDEX(user, %s, 1) IN %s AND NOT {LOGGING_IN}
"""  # noqa: S608  constants


log = structlog.get_logger(__name__)


class _Files(NamedTuple):
    octets: int = 0
    rebuilds: int = 0
    """Files that the rebuild of a table is writing."""


class MySQLMeasuring(Measuring):
    """`files` and `sharing` are for all databases together: finding one of them would read the whole list."""

    def __init__(
        self, connection: MySQLConnection, host: str, files: dict[str, _Files], sharing: frozenset[str]
    ) -> None:
        self._connection = connection
        self._host = host
        self._files = files
        self._sharing = sharing

    async def usage(self, names: Sequence[str], seconds: float) -> dict[str, Usage]:
        if not names:
            return {}
        with translated(self._host):
            return await _usage(self._connection, names, seconds, self._files, self._sharing)


@asynccontextmanager
async def measuring(connection: MySQLConnection, host: str, names: Sequence[str]) -> AsyncIterator[MySQLMeasuring]:
    """`host` is the server's name in errors."""
    # A tenant that locks its tables must not delay the measurement of the others.
    await connection.run(f"SET SESSION lock_wait_timeout = {connection.flavour.shortest_wait}")
    await _limit_time(connection, SURVEY_SECONDS)
    rows = await connection.run(connection.flavour.sizes, ([*names],)) if names else []
    files = {str(name): _Files(int(octets or 0), int(rebuilds or 0)) for name, octets, rebuilds in rows}
    yield MySQLMeasuring(connection, host, files, await _sharing(connection, names))
    await _limit_time(connection, 0)
    await connection.run(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")


async def _sharing(connection: MySQLConnection, names: Sequence[str]) -> frozenset[str]:
    if not (names and connection.flavour.shares_files):
        return frozenset()
    try:
        return await shared_files.find(connection, names)
    except pymysql.MySQLError as error:
        if error.args[:1] != (TIMED_OUT,):
            raise
        log.warning("shared_files_not_measured", reason="the server holds too many tables to be measured in time")
        return frozenset()


async def _usage(
    connection: MySQLConnection,
    names: Sequence[str],
    seconds: float,
    files: dict[str, _Files],
    sharing: frozenset[str],
) -> dict[str, Usage]:
    flavour, deadline = connection.flavour, time.monotonic() + seconds

    async def ask(statement: str, asked: Sequence[str] = names) -> list[tuple[str, int]]:
        """Runs the query for these databases within the remaining time."""
        await _limit_time(connection, _left(deadline))
        return [(str(name), int(octets or 0)) for name, octets in await connection.run(statement, ([*asked],))]

    try:
        storage = {name: files.get(name, _Files()).octets for name, _ in await ask(_DATABASES)}
        others = [name for name, _ in await ask(_OTHER_ENGINES)]
        if others and flavour.cached_statistics:
            await connection.run("SET SESSION information_schema_stats_expiry = 0")
        found = await ask(_OTHER_SIZES, others) if others else []
        for name in sharing.intersection(storage):
            octets = await shared_files.estimate(connection, name, lambda: _left(deadline))
            storage[name] = max(octets, storage[name] + sum(size for other, size in found if other == name))
            found = [(other, size) for other, size in found if other != name]
        for statement in flavour.definitions:
            with ignored(NO_PRIVILEGE_ON_TABLE):  # of an administrator that was made before this was asked for
                found += await ask(statement)
        if flavour.temporary is not None:
            found += await ask(flavour.temporary)
        for name, octets in found:
            if name in storage:
                storage[name] += octets
    finally:
        if connection.usable:
            await _limit_time(connection, 0)
    held = await sessions(connection, names)
    return {
        name: Usage(
            storage_bytes=octets,
            connections=len(held.get(name, ())),
            rebuilding=files.get(name, _Files()).rebuilds > 0,
        )
        for name, octets in storage.items()
    }


async def _limit_time(connection: MySQLConnection, seconds: float) -> None:
    await connection.run(f"SET SESSION {connection.flavour.time_limit(seconds)}")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise EngineError("measuring takes too long")
    return max(left, 0.001)


async def sessions(connection: MySQLConnection, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """The ids of open sessions by tenant, including those of helper accounts. Session ids are not reused while the
    server runs."""
    found: dict[str, set[str]] = {}
    for name, number in await connection.run(_SESSIONS, (HELPER_SEPARATOR, HELPER_SEPARATOR, [*names])):
        found.setdefault(name, set()).add(str(number))
    return {name: frozenset(numbers) for name, numbers in found.items()}
