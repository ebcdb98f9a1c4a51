"""Processes that stand still for a while, as on a machine that stalls."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import psutil

from tests.support.waiting import until

_IN_TRANSACTION = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND client_port = ANY($1::integer[]) AND state <> 'idle'
"""
_LOOKS = 2
"""What the process sent last may not have been read yet at the first."""


@asynccontextmanager
async def frozen(pid: int, control_dsn: str) -> AsyncIterator[None]:
    """Stops the process with SIGSTOP for the block, at a moment at which no transaction of its is open in our own
    database: what it had locked would stay so, and others would do otherwise than the test is about."""
    look = await asyncpg.connect(control_dsn)
    server_port = await look.fetchval("SELECT inet_server_port()")

    async def stopped_between_transactions() -> bool:
        os.kill(pid, signal.SIGSTOP)
        ports = _ports_to(server_port, pid)
        for _ in range(_LOOKS):
            if await look.fetchval(_IN_TRANSACTION, ports):
                os.kill(pid, signal.SIGCONT)
                return False
        return True

    try:
        await until(stopped_between_transactions)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        await look.close()


def _ports_to(server_port: int, pid: int) -> list[int]:
    """Its own ports of its connections to that server: another process may have the same one to another server."""
    found = psutil.Process(pid).net_connections("tcp")
    return [one.laddr.port for one in found if one.raddr and one.raddr.port == server_port]
