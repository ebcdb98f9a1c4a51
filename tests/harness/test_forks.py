"""Processes that are forked behave as those of the command line: they say why they can't start, and how they ended."""

import signal
from pathlib import Path

import pytest

from app.core.secrets import new_key_setting
from app.local.errors import StackError
from app.local.ports import LOOPBACK
from app.local.services import server_environ, start
from tests.support.forks import ForkedApi
from tests.support.ports import free_port
from tests.support.waiting import LIMIT_SECONDS


def forked_api(folder: Path, **settings: str) -> ForkedApi:
    port = free_port()
    environ = server_environ() | {f"HEADWATER_{name}": value for name, value in settings.items()}
    environ |= {"HEADWATER_API_PORT": str(port)}
    return ForkedApi("api", port=port, log=folder / "api.log", environ=lambda: environ, host=LOOPBACK)


async def test_one_that_can_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"api ended \(2\)(?s:.*)HEADWATER_LOG_LEVEL"):
        await start(forked_api(tmp_path, LOG_LEVEL="whisper"))


async def test_each_has_its_own_environment_and_end(tmp_path: Path, control_dsn: str) -> None:
    known = {"CONTROL_DSN": control_dsn, "SECRET_KEYS": new_key_setting(), "TEMPORAL_ADDRESS": f"{LOOPBACK}:1"}
    first, second = [await start(forked_api(tmp_path, **known)) for _ in range(2)]
    await first.kill()
    assert first.returncode == -signal.SIGKILL
    assert second.returncode is None
    await second.stop(timeout=LIMIT_SECONDS)
    assert second.returncode == 0
