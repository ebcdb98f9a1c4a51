"""Translating the driver's errors to `EngineError`s."""

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql

from app.engines.base import CredentialsRefused, EngineError, HostUnavailable, LoginRefused, TenantFull
from app.engines.errors import shortened
from app.engines.tls import tls_failure

TABLE_EXISTS = 1050
DUPLICATE_COLUMN = 1060
DUPLICATE_ROW = 1062
SYNTAX_ERROR = 1064
LOCK_WAIT_TIMEOUT = 1205
NO_SUCH_DATABASE = 1049
NO_SUCH_TABLE = 1109
LACKING = (1021, 1037, 1041, 1114)
"""The host has no room on its disk, or no memory, at the moment: `ER_DISK_FULL`, `ER_OUTOFMEMORY`,
`ER_OUT_OF_RESOURCES`, and `ER_RECORD_FILE_FULL`, which is what a table says on a full disk."""
DATABASE_GONE = 3503  # its making was rolled back meanwhile
NO_PRIVILEGE_ON_TABLE = 1142
NO_SUCH_GRANT = 1141
NO_SUCH_COLUMN = 1054
NO_SUCH_THREAD = 1094
NO_SUCH_BRANCH = 1397
EMPTY_PASSWORD = 3878
STILL_DEFINER = 4006
TIMED_OUT = 3024
MARIADB_TIMED_OUT = 1969
SESSION_LOST = frozenset({0, 1053, 1927, 2006, 2013, 4031})
"""Shutting down, killed, gone, lost during a statement, disconnected; 0 if the driver found it closed."""

_UNAVAILABLE = {
    "1021",  # disk full
    "1040",  # too many connections
    "1053",  # shutting down
    "1129",  # our address is blocked after broken handshakes
    "1203",  # too many of our own connections
    "2003",  # nobody answers
    "2006",  # the connection is gone
    "2013",  # lost during a statement
    "2061",  # it asks for what a server that isn't proven to be ours may not have
    "3032",  # offline mode
}
_REFUSED = {
    "1044",  # no access to the database
    "1130",  # no account for this address
    "1698",  # no password login
    "3118",  # locked (MySQL)
    "4151",  # locked (MariaDB)
}
_CHANGED = {"1045"}  # wrong password, or no such account
_FULL = {
    "1203",  # max_user_connections of the server
    "1226",  # and of the account
}


@contextmanager
def translated(host: str) -> Iterator[None]:
    """Raises `HostUnavailable` or `EngineError` in place of the driver's errors. `host` is its name in messages."""
    try:
        yield
    except pymysql.MySQLError as error:
        raise _from_driver(host, error) from error
    except TimeoutError as error:
        raise HostUnavailable(f"{host} can't be reached: no answer in time") from error
    except OSError as error:
        reason = tls_failure(error) or error.strerror or type(error).__name__
        raise HostUnavailable(f"{host} can't be reached: {reason}") from error


@contextmanager
def translated_login(host: str) -> Iterator[None]:
    """The same around a login of a tenant."""
    try:
        with translated(host):
            yield
    except EngineError as error:
        if error.code in _CHANGED:
            raise CredentialsRefused(str(error), code=error.code) from error
        if error.code in _FULL:
            raise TenantFull(str(error), code=error.code) from error
        if error.code in _REFUSED:
            raise LoginRefused(str(error), code=error.code) from error
        raise


@contextmanager
def ignored(number: int) -> Iterator[None]:
    """Suppresses this error of the server."""
    try:
        yield
    except pymysql.MySQLError as error:
        if error.args[:1] != (number,):
            raise


def _from_driver(host: str, error: pymysql.MySQLError) -> EngineError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if not number:
        # Not from the server: the driver found its connection closed.
        return HostUnavailable(f"{host}: the connection was lost")
    code = str(number)
    if error.__cause__ is not None and (failure := tls_failure(error.__cause__)) is not None:
        return HostUnavailable(f"{host} can't be reached: {failure}", code=code)
    # The message of a syntax error quotes the statement, which may hold a password.
    message = "syntax error" if number == SYNTAX_ERROR else str(error.args[1] if len(error.args) > 1 else code)
    kind = HostUnavailable if code in _UNAVAILABLE else EngineError
    return kind(f"{host}: {shortened((message.splitlines() or [code])[0])}", code=code)
