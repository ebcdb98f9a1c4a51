"""What a database holds now, described as a dump describes it."""

import secrets

import pymysql

from app.engines.dumping import Content, ContentKind
from app.engines.errors import EngineError, HostUnavailable
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps import wire
from app.engines.mysql.dumps.columns import seed, select_rows, selection
from app.engines.mysql.dumps.definitions import definitions
from app.engines.mysql.dumps.relay import READ_BYTES, next_value
from app.engines.mysql.dumps.rows import EOF_BYTES, RowsDigest
from app.engines.mysql.dumps.tables import SEQUENCE, TableList

_NONCE_BYTES = 16
_DIGITS = 20
# From the end of the marker's answer back to its count: the packet of the end, the nonce and its length, the count.
_COUNTED = EOF_BYTES + 2 * _NONCE_BYTES + 1 + _DIGITS


async def contents(session: MySQLConnection, administrator: MySQLConnection, database: str) -> list[Content]:
    """What the database holds at one moment, ordered by name. `session` reads the rows."""
    await session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    tables = await TableList.read(session, database)
    await session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    marker_bytes = await _marker_length(session)
    contents = []
    for name, kind in tables.kinds.items():
        if kind == SEQUENCE:
            query, said, what = next_value(name), b"", ContentKind.SEQUENCE
        else:
            columns = await selection(session, database, name)
            query, said, what = select_rows(columns, name), seed(columns), ContentKind.TABLE
        rows, fingerprint = await _read(session, query, said, marker_bytes)
        contents.append(Content(name=name, kind=what, rows=rows, fingerprint=fingerprint))
    return sorted([*contents, *await definitions(administrator, database)])


async def _read(session: MySQLConnection, query: str, said: bytes, marker_bytes: int) -> tuple[int, str]:
    """Sends a second query right after the first. Its answer, of a known length and with a value that nobody could
    know, shows that the answer to the first query is complete, without a look at each row."""
    nonce = secrets.token_hex(_NONCE_BYTES).encode()
    digest = RowsDigest(said, kept_back=EOF_BYTES + marker_bytes)
    _send(session, query.encode("utf-8", "surrogateescape"))
    _send(session, _marker(nonce))
    while not _ends_with(digest.tail, nonce):
        digest.feed(await _received(session))
        if digest.refused is not None and nonce in digest.refused:
            raise pymysql.OperationalError(*_error_of(digest.refused))
    if not digest.complete():
        raise EngineError("the server broke a table off")
    return int(digest.tail[-_COUNTED : -_COUNTED + _DIGITS]), digest.hexdigest()


async def _marker_length(session: MySQLConnection) -> int:
    nonce = secrets.token_hex(_NONCE_BYTES).encode()
    _send(session, _marker(nonce))
    answer = b""
    while not _ends_with(answer, nonce):
        answer += await _received(session)
    return len(answer)


def _marker(nonce: bytes) -> bytes:
    return b"SELECT LPAD(FOUND_ROWS(), %d, '0') AS n, '%s' AS m" % (_DIGITS, nonce)


def _ends_with(answer: bytes, nonce: bytes) -> bool:
    return answer[-EOF_BYTES - len(nonce) : -EOF_BYTES] == nonce


def _send(session: MySQLConnection, statement: bytes) -> None:
    session._write_bytes(wire.packet(0, bytes([wire.COM_QUERY]) + statement))


async def _received(session: MySQLConnection) -> bytes:
    data: bytes = await session._reader.read(READ_BYTES)
    if not data:
        raise HostUnavailable("the server ended the session")
    return data


def _error_of(packet: bytes) -> tuple[int, str]:
    length = int.from_bytes(packet[:3], "little")
    number = int.from_bytes(packet[5:7], "little")
    return number, packet[13 : 4 + length].decode("utf-8", "replace")
