"""`headwater` as a process of its own: what a script that calls it sees."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.support.service import RunningService

HEADWATER = Path(sys.executable).parent / "headwater"


async def _run(service: RunningService, *arguments: str) -> tuple[int | None, str, str]:
    environ = {"PATH": os.environ["PATH"], **service.environ()}
    process = await asyncio.create_subprocess_exec(
        HEADWATER, *arguments, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode(), errors.decode()


async def test_a_command_that_spoke_to_temporal_ends_well(service: RunningService) -> None:
    """Again and again: threads of Temporal's client made every second such process abort at its very end."""
    for _ in range(6):
        status, output, errors = await _run(service, "workflows", "open", "--json")
        assert (status, errors) == (0, "")
        assert isinstance(json.loads(output), list)


async def test_exit_statuses(service: RunningService) -> None:
    assert (await _run(service, "--version"))[0] == 0
    status, output, errors = await _run(service, "keys", "revoke", "999999999")
    assert (status, output) == (1, "")
    assert "Error" in errors
    assert (await _run(service, "no-such-command"))[0] == 2
