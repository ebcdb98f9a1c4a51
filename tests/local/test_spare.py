"""The process that has imported the API and the workers, and becomes one that has died."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from app.local.python_services import ApiService
from app.local.services import server_environ
from app.local.spare import Spare
from tests.support.waiting import until


@asynccontextmanager
async def keeping(spare: Spare) -> AsyncIterator[None]:
    task = asyncio.create_task(spare.keep(first=0, every=0.01))
    try:
        yield
    finally:
        task.cancel()


def api_of(folder: Path, spare: Spare) -> ApiService:
    """One whose settings are refused."""
    environ = server_environ() | {"HEADWATER_API_PORT": "no port"}
    return ApiService("api", port=1, log=folder / "api.log", environ=lambda: environ, host="127.0.0.1", spare=spare)


async def test_it_becomes_what_has_died(tmp_path: Path) -> None:
    spare = Spare(tmp_path / "spare.log", {"MARK": "x"})
    api = api_of(tmp_path, spare)
    async with keeping(spare):
        pid = await until(lambda: spare.pid)
    assert psutil.Process(pid).environ()["MARK"] == "x"
    child = await api.launch(api.command())
    assert (child.pid, spare.pid) == (pid, None)
    # With its own environment and its own log, as by its command line.
    assert await child.wait() == 2
    assert "HEADWATER_API_PORT" in api.log.read_text()
    assert (tmp_path / "spare.log").read_text() == ""


async def test_without_one_a_process_is_started(tmp_path: Path) -> None:
    api = api_of(tmp_path, Spare(tmp_path / "spare.log", {}))
    child = await api.launch(api.command())
    assert child.returncode is None
    await child.kill()


async def test_one_that_died_is_replaced_and_the_last_one_ended(tmp_path: Path) -> None:
    spare = Spare(tmp_path / "spare.log", {})
    async with keeping(spare):
        first = await until(lambda: spare.pid)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: spare.pid not in (first, None))
    await spare.stop()
    assert spare.pid is None
