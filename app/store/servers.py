"""Connecting to the one of our own database's servers that takes writes."""

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

_HEAD_START_SECONDS = 0.25
"""How long a server is tried before the next one is tried too, as in RFC 8305 (section 5)."""
_LOST_SECONDS = 10
"""How long a server may leave unacknowledged what was sent to it. A machine that is gone says nothing."""
_LOST_CLIENTS = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
"""What the server is to do for the same in the other direction. By itself it keeps a session whose client is gone for
two hours, with its locks and its place among the connections. No `tcp_user_timeout`: that would also end the session of
a client that reads slowly."""


async def connect_to_store(dsn: str, **options: Any) -> asyncpg.Connection:
    """As `asyncpg.connect`, with these differences.

    The DSN may name several servers, `postgresql://user:password@one:5432,two:5432/headwater`, with
    `target_session_attrs=read-write` (libpq's connection strings, section 34.1.1.3): the first that answers and takes
    writes is connected to. They are tried one a quarter of a second after the other, so that a machine which says
    nothing costs no more than that. The driver would wait for it for the whole `timeout`.

    A connection whose server has acknowledged nothing for ten seconds breaks, and the server ends a session whose
    client's machine has been silent for 25.

    Its prepared statements are kept. The driver would drop them after five minutes, and what is asked rarely, such as a
    create, would always be prepared anew, and planned anew five times.
    """
    settings = {**_LOST_CLIENTS, **options.pop("server_settings", {})}
    options = {"max_cached_statement_lifetime": 0, **options, "server_settings": settings}
    servers = _single(dsn)
    if len(servers) == 1:
        connection = await asyncpg.connect(dsn, **options)
    else:
        connection = await _first(servers, options)
    _notice_loss(connection)
    return connection


def _single(dsn: str) -> list[str]:
    """A DSN for each of the servers that this one names."""
    parts = urlsplit(dsn)
    login, at, servers = parts.netloc.rpartition("@")
    return [urlunsplit(parts._replace(netloc=f"{login}{at}{server}")) for server in servers.split(",")]


async def _first(servers: list[str], options: dict[str, Any]) -> asyncpg.Connection:
    """The first connection that succeeds. Raises what the last server failed with, where all failed."""
    waiting = list(servers)
    trying: set[asyncio.Task[asyncpg.Connection]] = set()
    fault: BaseException | None = None
    try:
        while waiting or trying:
            if waiting:
                trying.add(asyncio.create_task(asyncpg.connect(waiting.pop(0), **options)))
            limit = _HEAD_START_SECONDS if waiting else None
            done, trying = await asyncio.wait(trying, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (failed := task.exception()) is None:
                    done.discard(task)
                    trying |= done
                    return task.result()
                fault = failed
        assert fault is not None, "a DSN names a server"
        raise fault
    finally:
        await _let_go(trying)


async def _let_go(trying: set[asyncio.Task[asyncpg.Connection]]) -> None:
    for task in trying:
        task.cancel()
    for ended in await asyncio.gather(*trying, return_exceptions=True):
        if isinstance(ended, asyncpg.Connection):
            ended.terminate()


def _notice_loss(connection: asyncpg.Connection) -> None:
    # The pool wraps connections that it hands out, not those that it makes.
    transport = connection._transport  # the driver shows no other way to its socket
    opened = transport.get_extra_info("socket")
    if opened is not None and hasattr(socket, "TCP_USER_TIMEOUT") and opened.family != socket.AF_UNIX:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _LOST_SECONDS // 2)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _LOST_SECONDS // 5)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _LOST_SECONDS)
