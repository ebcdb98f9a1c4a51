"""Translating the driver's errors to `EngineError`s."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from app.engines.base import CredentialsRefused, EngineError, HostUnavailable, LoginRefused, TenantFull
from app.engines.errors import ServerFull, shortened
from app.engines.postgres.wire import too_large
from app.engines.tls import tls_failure

_UNAVAILABLE = {
    "53100",  # disk full
    "53300",  # too many connections
    "57P01",  # shutting down
    "57P02",  # shutting down after a crash
    "57P03",  # starting up
}
# Not 53200, "out of (shared) memory": the host answers, and a tenant has taken all of its locks.
_REFUSED = {
    "28000",  # the role may not log in, or pg_hba.conf has no line for it
    "3D000",  # no such database
    "42501",  # no CONNECT
    "55000",  # the database takes no connections
}
_CHANGED = {
    "28P01",  # wrong password
    "58P01",  # a library that the role itself asked for in local_preload_libraries
}
# The server's own names of where it refuses a login to a database or a role that is full, and of where our login
# trigger does: the messages are in the server's language. It has looked at the password by then.
_DATABASE_IS_FULL = "CheckMyDatabase"
_AFTER_PASSWORD = (_DATABASE_IS_FULL, "InitializeSessionUserId", "exec_stmt_raise")
LOCK_NOT_AVAILABLE = "55P03"
UNRECOGNIZED_PARAMETER = "42704"


@contextmanager
def translated(host: str) -> Iterator[None]:
    """Raises `HostUnavailable` or `EngineError` in place of the driver's errors. `host` is its name in messages."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _from_server(host, error) from error
    except (OSError, TimeoutError) as error:
        raise HostUnavailable(f"{host} can't be reached: {_reason(error)}") from error
    # The latter of a connection that the server has ended, and whose loss the driver hasn't read yet.
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise HostUnavailable(f"{host}: the connection was lost") from error


@contextmanager
def translated_login(host: str) -> Iterator[None]:
    """The same around a login of a tenant. A full host or role is an `EngineError` here: it says nothing about the
    credentials, and the host did answer."""
    try:
        with translated(host):
            yield
    except EngineError as error:
        if error.code in _CHANGED:
            raise CredentialsRefused(str(error), code=error.code) from error
        if error.code in _REFUSED:
            raise LoginRefused(str(error), code=error.code) from error
        if error.code == "53300":
            kind = TenantFull if _refused_by(error) in _AFTER_PASSWORD else ServerFull
            raise kind(str(error), code=error.code) from error
        raise


@contextmanager
def translated_entry(host: str) -> Iterator[None]:
    """The same around a login of the administrator to a tenant's database. Raises `TenantFull` where that has no
    connection left: the host has others, and did answer."""
    try:
        with translated(host):
            yield
    except HostUnavailable as error:
        if error.code == "53300" and _refused_by(error) == _DATABASE_IS_FULL:
            raise TenantFull(str(error), code=error.code) from error
        raise


def _refused_by(error: EngineError) -> str | None:
    """The server's function that raised what this error was translated from."""
    return getattr(error.__cause__, "server_source_function", None)


def _from_server(host: str, error: asyncpg.PostgresError) -> EngineError:
    cut = too_large(error)
    if cut is not None:
        return EngineError(f"{host}: {cut}")
    code: str | None = getattr(error, "sqlstate", None)
    lost = isinstance(error, asyncpg.PostgresConnectionError)
    kind = HostUnavailable if lost or code in _UNAVAILABLE else EngineError
    # The primary message alone: DETAIL may quote values.
    message = str(error.args[0]) if error.args else type(error).__name__
    return kind(f"{host}: {shortened((message.splitlines() or [type(error).__name__])[0])}", code=code)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if (failure := tls_failure(error)) is not None:
        return failure
    if "rejected SSL upgrade" in str(error):  # the driver has no type for it
        return "it offers no TLS, which this host's mode asks for"
    return (getattr(error, "strerror", None) or type(error).__name__).splitlines()[0]
