"""The workers' health check: a queue is served when this machine polls it."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio.service import RPCError

from app.core.settings import Settings
from app.core.temporal import connect
from app.local.temporal import TemporalService
from tests.support.waiting import LIMIT_SECONDS, until
from tests.support.worker_dependencies import tools
from workers.health import unserved
from workers.runner import build_worker


@pytest.fixture
async def queue(temporal_server: TemporalService) -> AsyncIterator[str]:
    """A queue that a worker of this process polls, and that Temporal has seen polled."""
    name = f"engine:{uuid4().hex}"
    client = await connect(temporal_server.address, "default")
    async with build_worker(client, name, tools()):
        yield name


async def _check(address: str, *queues: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "workers.health", *(part for name in queues for part in ("--queue", name))]
    environ = {"PATH": os.environ["PATH"], "HEADWATER_TEMPORAL_ADDRESS": address}
    return await asyncio.to_thread(
        subprocess.run, argv, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )


async def test_a_queue_is_healthy_once_it_is_polled(temporal_server: TemporalService, queue: str) -> None:
    async def healthy() -> bool:
        return (await _check(temporal_server.address, queue)).returncode == 0

    await until(healthy)

    async def names_the_other() -> bool:
        other = await _check(temporal_server.address, queue, "engine:nobody")
        return (other.returncode, other.stderr) == (1, "nothing here polls engine:nobody\n")

    await until(names_the_other)


async def test_another_machine_s_worker_counts_for_nothing_here(temporal_server: TemporalService, queue: str) -> None:
    settings = Settings(temporal_address=temporal_server.address)

    async def asked(**options: Any) -> list[list[str]]:
        """Nothing where Temporal has not answered in time."""
        with contextlib.suppress(TimeoutError, RPCError):
            return [await unserved(settings, [queue], **options)]
        return []

    async def served() -> bool:
        return await asked() == [[]]

    await until(served)
    assert await until(lambda: asked(host="elsewhere")) == [[queue]]
    # The worker polls all the while: none of its polls is as late as in a minute.
    assert await until(lambda: asked(fresh=-timedelta(minutes=1))) == [[queue]]


async def test_without_temporal_it_says_so() -> None:
    away = await _check("127.0.0.1:1", "control")
    assert away.returncode == 1
    assert away.stderr.startswith("Temporal can't be asked: ")
