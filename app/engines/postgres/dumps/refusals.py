"""What the server or a tool says in place of a dump or a load, as the errors that callers know."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from app.engines.base import EngineError, HostUnavailable
from app.engines.dumping import DumpRefused
from app.engines.errors import shortened
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.errors import translated

_ERROR = re.compile(r"^pg_(?:dump|restore): (?:error|fatal): (.*)$")
_PLACE = re.compile(r"^pg_restore: from TOC entry \d+; \d+ \d+ (.*)$")
# These quote values, or are the statement itself.
_QUOTING = ("DETAIL:", "CONTEXT:", "HINT:", "Command was:", "pg_dump: detail: Command was:", "QUERY:")


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


async def answering(connections: PostgresConnections) -> None:
    """Raises `HostUnavailable` if the host doesn't answer: then that is why a tool has failed."""
    async with connections.admin_alone() as connection:
        await connection.execute("SELECT 1")


def said(errors: str, otherwise: str) -> str:
    """The first error among a tool's messages, after the object that it is about, without the values that it quotes."""
    place = message = ""
    for line in errors.splitlines():
        if found := _PLACE.match(line):
            place = place or f"{found[1]}: "
        elif (found := _ERROR.match(line)) and not message:
            message = found[1]
        elif message and line.startswith(_QUOTING):
            break
    return shortened(place + (message or otherwise))
