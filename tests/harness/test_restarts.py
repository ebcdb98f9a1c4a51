"""What a test leaves stopped fails that test alone."""

import os
import signal
from pathlib import Path

import pytest

from tests.harness.runs import pytest_run
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waiting import is_running, until

MODULE = """
import subprocess
import pytest, pytest_asyncio

class Service:
    def __init__(self): self.process = None
    async def start(self): self.process = subprocess.Popen(["sleep", "300"])
    async def start_stopped(self):
        if self.process.poll() is None: return []
        await self.start()
        return ["the process"]

@pytest_asyncio.fixture(scope="session")
async def service():
    made = Service()
    await made.start()
    yield made
    made.process.kill()
    made.process.wait()

@pytest.fixture
def user(service): return service

def kill(service):
    service.process.kill()
    service.process.wait()

async def test_before(service): assert service.process.poll() is None
async def test_fails(service):
    kill(service)
    assert not "what it is"
async def test_after(service): assert service.process.poll() is None
def test_passes(user): kill(user)
def test_last(user): assert user.process.poll() is None
async def test_without(): pass
"""


async def test_the_tests_after_it_have_their_processes(tmp_path: Path) -> None:
    async with pytest_run(tmp_path, MODULE) as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "FAILED test_module.py::test_fails" in output
    failed = [line.split("::")[1].split(" ")[0] for line in output.splitlines() if line.startswith("ERROR ")]
    assert failed == ["test_fails", "test_passes"], output
    assert "1 failed, 5 passed, 2 errors" in output
    assert "it left these stopped, which were started again: the process" in output


async def test_a_service_that_was_killed_is_started(service: RunningService, caller: Caller) -> None:
    assert await service.start_stopped() == []
    await service.kill("worker")
    api = service.processes["api"].pid
    os.kill(api, signal.SIGKILL)
    await until(lambda: not is_running(api))
    assert await service.start_stopped() == ["worker", "api"]
    assert (await caller.create(wait=True)).status_code == 201
