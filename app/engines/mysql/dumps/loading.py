"""Loading a dump, statement by statement over a session of the tenant's own account.

No client program reads the dump, so nothing in it can be a client's command; the server runs each statement with the
tenant's rights. What was defined by an account of the dumped database is defined by the tenant that loads it.
"""

import re
from collections.abc import AsyncIterator, Awaitable

import pymysql
from pymysql.constants.SERVER_STATUS import SERVER_STATUS_NO_BACKSLASH_ESCAPES

from app.engines.dumping import DumpFormat, LoadRefused
from app.engines.errors import HostFull, shortened
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps.dump import LAYOUT
from app.engines.mysql.dumps.long_rows import LongRow
from app.engines.mysql.dumps.statements import Statements
from app.engines.mysql.errors import LACKING, SESSION_LOST, translated

_HEADER = re.compile(rb"-- headwater ([a-z][a-z0-9]{0,31})\n")
_ACCOUNT = rb"DEFINER=`(?:[^`]|``)*`@`(?:[^`]|``)*`\s?"
_DEFINED = re.compile(
    rb"\A(?P<head>/\*!50001 CREATE ALGORITHM=\w+ \*/\s+/\*!50013 |/\*!50003 CREATE\*/ /\*!50017 |"
    rb"CREATE (?:OR REPLACE )?(?:ALGORITHM=\w+ )?)" + _ACCOUNT
)
_NAMES_THE_DATABASE = re.compile(rb"\A(?:/\*!5000[13] )?(?:CREATE|ALTER DATABASE)\b")
_SHOWN = 120
_VALUES = re.compile(rb" VALUES\s")
_QUOTED = re.compile(r"\b(Duplicate entry|value:?) '.*'(?= for (?:key|column)\b)", re.DOTALL)
"""Such as "Duplicate entry '…' for key 'PRIMARY'" and "Incorrect integer value: '…' for column `t`.`n` at row 1"."""


async def load(
    session: MySQLConnection, form: DumpFormat, chunks: AsyncIterator[bytes], database: str, host: str
) -> None:
    """Loads the dump. Raises `EngineError`, `LoadRefused` and `HostFull` among them; what `chunks` raises. `host` is
    the server's name in messages."""
    if form.layout != LAYOUT or form.flavour != session.flavour.name:
        raise LoadRefused(f"this is a dump of {form.flavour} ({form.layout}), and the server is {session.flavour.name}")
    with translated(host):
        # A dump that comes from another server may have nothing to say for hours: it looks through a table's documents.
        await session.stay_open()
    first = await anext(chunks, b"")
    header = _HEADER.match(first)
    if header is None:
        raise LoadRefused("the dump has no header")
    statements = Statements(_after(first[header.end() :], chunks))
    async for statement in statements:
        with translated(host):
            if isinstance(statement, LongRow):
                await _run(session, statement.beginning, statement.run(session))
            else:
                ours = _as_ours(statement, header[1], database.encode())
                await _run(session, statement, session.query(ours))
        statements.backslash_escapes = not session.server_status & SERVER_STATUS_NO_BACKSLASH_ESCAPES


async def _run(session: MySQLConnection, statement: bytes, running: Awaitable[None]) -> None:
    try:
        await running
    except pymysql.MySQLError as error:
        if error.args[0] in SESSION_LOST or not session.usable:
            raise
        if error.args[0] in LACKING:
            raise HostFull(f"{_shown(statement)}: {_said(error)}", code=str(error.args[0])) from error
        raise LoadRefused(f"{_shown(statement)}: {_said(error)}", code=str(error.args[0])) from error


async def _after(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in chunks:
        yield chunk


def _as_ours(statement: bytes, old: bytes, new: bytes) -> bytes:
    """The statement for our own database: definitions may name their database, and always name who made them."""
    if not _NAMES_THE_DATABASE.match(statement):
        return statement
    statement = _DEFINED.sub(rb"\g<head>", statement, count=1)
    return statement.replace(old, new)


def _shown(statement: bytes) -> str:
    """The beginning of a statement, and nothing of rows."""
    statement = _VALUES.split(statement[: 8 * _SHOWN], maxsplit=1)[0] if statement.startswith(b"INSERT") else statement
    text = " ".join(statement[: 4 * _SHOWN].decode("utf-8", "replace").split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _said(error: pymysql.MySQLError) -> str:
    """The server's message, without the value that it quotes."""
    said = _QUOTED.sub(r"\1 …", str(error.args[1] if len(error.args) > 1 else error))
    return shortened(said)
