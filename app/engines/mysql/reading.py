"""The session state that changes how the server reads the next statement, and whether a statement's effects are
permanent."""

import msgspec

from app.engines.errors import StatementUncertain
from app.engines.mysql.connection import MySQLConnection

REREADING_MODES = (
    "ANSI_QUOTES",
    "NO_BACKSLASH_ESCAPES",
    "ANSI",
    "ORACLE",
    "MSSQL",
    "DB2",
    "MAXDB",
    "POSTGRESQL",
)
"""Modes of `sql_mode` that change the meaning of quotes, backslashes or whole statements; the last ones imply the
first."""
_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_ONE_OCTET = frozenset(
    {
        "ascii",
        "armscii8",
        "binary",
        "cp1250",
        "cp1251",
        "cp1256",
        "cp1257",
        "cp850",
        "cp852",
        "cp866",
        "dec8",
        "geostd8",
        "greek",
        "hebrew",
        "hp8",
        "keybcs2",
        "koi8r",
        "koi8u",
        "latin1",
        "latin2",
        "latin5",
        "latin7",
        "macce",
        "macroman",
        "tis620",
    }
)
"""Character sets in which ASCII bytes always are ASCII characters. In others a byte of a character may be a quote or
a backslash."""
_STATE = "SELECT @@SESSION.sql_mode, @@SESSION.character_set_client, @@SESSION.autocommit, "
# It counts in procedures and prepared statements too, and a tenant can't reset it.
_PREPARED = "SHOW SESSION STATUS LIKE 'Com_xa_prepare'"
_HOLDS = "COALESCE(IS_USED_LOCK(%s) = CONNECTION_ID(), 0)"


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that the server reports after a statement."""

    sql_mode: str
    character_set: str
    autocommit: bool
    in_transaction: bool
    holds_lock: bool
    prepared_branches: int
    """The number of XA branches that the session has prepared. MySQL detaches them, and the session looks as if
    nothing were open; MariaDB refuses all that comes after."""

    def check_lasting(self) -> None:
        """Raises `StatementUncertain` if what was run may not be permanent, or the session can't be identified."""
        if self.in_transaction or not self.autocommit:
            raise StatementUncertain("the statement left a transaction open, so its effects may not be permanent")
        if self.prepared_branches:
            raise StatementUncertain("the statement prepared an XA branch, so its effects may not be permanent")
        if not self.holds_lock:
            raise StatementUncertain("the statement released a lock that was not the script's")

    def misread(self) -> str | None:
        """Why the next statement would be read differently from how it was judged; None if it wouldn't."""
        modes = {mode.strip().upper() for mode in self.sql_mode.split(",")}
        for mode in REREADING_MODES:
            if mode in modes:
                return f"sql_mode has {mode} now, which changes how the rest of the script is read"
        if self.character_set not in _UTF8 | _ONE_OCTET:
            return (
                f"character_set_client is {self.character_set!r} now, which changes how the rest of the script is read"
            )
        return None

    def reads(self, statement: str) -> bool:
        """Whether the server reads the statement's characters as they are."""
        return self.character_set in _UTF8 or statement.isascii()


async def state_of(connection: MySQLConnection, lock_name: str | None = None) -> SessionState:
    """Asks the server for the session's state. `lock_name` is the lock that the session should hold, if any. The
    session may return bytes. Raises `StatementUncertain` if its answer can't be read: `character_set_results` and
    `sql_select_limit` are the session's too."""
    try:
        return await _state_of(connection, lock_name)
    except ValueError as error:
        raise StatementUncertain("the statement left a session whose answers can't be read") from error


async def _state_of(connection: MySQLConnection, lock_name: str | None) -> SessionState:
    asked = (_STATE + _HOLDS, (lock_name,)) if lock_name else (f"{_STATE}1", None)
    [(sql_mode, character_set, autocommit, holds_lock)] = await connection.run(*asked)
    # Only a response without rows updates the flag of an open transaction.
    await connection.run("DO 0")
    [(_, prepared)] = await connection.run(_PREPARED)
    return SessionState(
        sql_mode=_text(sql_mode),
        character_set=_text(character_set),
        autocommit=bool(int(autocommit)),
        in_transaction=connection.get_transaction_status(),
        holds_lock=bool(int(holds_lock)),
        prepared_branches=int(prepared),
    )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
