"""`headwater` where its output can't be written."""

import asyncio
import os

from tests.cli.command import Headwater
from tests.cli.test_process import HEADWATER

STREAMED = (("audit", "export"), ("usage", "--csv"))
"""Printed while our own database is read."""
COMMANDS = (*STREAMED, ("users", "list"), ("users", "list", "--json"), ("env",))


async def test_output_that_cannot_be_written_is_said(headwater: Headwater) -> None:
    for arguments in COMMANDS:
        status, errors = await _run(headwater, arguments, os.open("/dev/full", os.O_WRONLY))
        assert status == 1, arguments
        assert "Can't write the output: No space left on device" in errors, arguments
        assert "Traceback" not in errors


async def test_a_reader_that_has_gone_ends_a_command_without_a_word(headwater: Headwater) -> None:
    for arguments in COMMANDS:
        reader, writer = os.pipe()
        os.close(reader)
        assert await _run(headwater, arguments, writer) == (1, ""), arguments


async def _run(headwater: Headwater, arguments: tuple[str, ...], output: int) -> tuple[int | None, str]:
    """Its exit status, and what it says beside its output, which goes to a descriptor that is closed afterwards."""
    environ = {"PATH": os.environ["PATH"], **{f"HEADWATER_{name}": value for name, value in headwater.settings.items()}}
    process = await asyncio.create_subprocess_exec(
        HEADWATER, *arguments, env=environ, stdout=output, stderr=asyncio.subprocess.PIPE
    )
    os.close(output)
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, errors.decode()
