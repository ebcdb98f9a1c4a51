"""What the server or a tool says in place of a dump or a load, as the errors that callers know."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from app.engines.base import EngineError, HostUnavailable, LoginRefused, TenantFull
from app.engines.dumping import DumpRefused
from app.engines.errors import shortened
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.errors import translated

_ERROR = re.compile(r"^pg_(?:dump|restore): (?:error|fatal): (.*)$")
_STATEMENT = re.compile(r"^Command was: ((?:CREATE|ALTER|COMMENT|GRANT|REVOKE|REFRESH)\b.{0,200})")


@contextmanager
def refused(host: str) -> Iterator[None]:
    """Raises `HostUnavailable` or `DumpRefused` in place of the driver's errors."""
    try:
        with translated(host):
            yield
    except (HostUnavailable, DumpRefused):
        raise
    except EngineError as error:
        raise DumpRefused(str(error), code=error.code) from error


@contextmanager
def logging_in(host: str) -> Iterator[None]:
    """The same around a login of a dump's own account. It is refused when the tenant's access was ended meanwhile, or
    where no connection is free, which is no fault of the database: raises `HostUnavailable` then."""
    with refused(host):
        try:
            yield
        except (LoginRefused, TenantFull) as error:
            raise HostUnavailable(str(error), code=error.code) from error


_LOST = (
    "connection to server at ",
    "server closed the connection unexpectedly",
    "SSL connection has been closed unexpectedly",
    "could not receive data from server",
    "could not send data to server",
    "no connection to the server",
    "terminating connection due to administrator command",
)
"""What the client's library says, in the language of its own environment, of a session that did not begin, or was
ended; and the server itself, where it still could."""


async def answering(connections: PostgresConnections, errors: str) -> None:
    """Raises `HostUnavailable` if the host doesn't answer, or has refused or ended the tool's session: then that is why
    it has failed, and another attempt may succeed. `errors` are the tool's messages."""
    async with connections.admin_alone() as connection:
        await connection.execute("SELECT 1")
    if any(sign in errors for sign in _LOST):
        raise HostUnavailable(f"{connections.host}: the connection was lost")


def said(errors: str, otherwise: str) -> str:
    """The first error among a tool's messages, with the beginning of the definition that it is about. Not the lines
    that quote rows."""
    message = ""
    for line in errors.splitlines():
        if not message and (found := _ERROR.match(line)):
            message = found[1]
        elif message and (found := _STATEMENT.match(line)):
            return shortened(f"{message} ({found[1]})")
    return shortened(message or otherwise)
