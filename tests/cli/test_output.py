"""What `headwater` prints, as JSON and where it can't be written."""

import asyncio
import os
from collections.abc import Iterator

import rich_click as click

from app.cli.main import main
from tests.cli.command import Headwater, commands_of
from tests.cli.test_process import HEADWATER

STREAMED = (("audit", "export"), ("usage", "--csv"))
"""Printed while our own database is read."""
COMMANDS = (*STREAMED, ("users", "list"), ("users", "list", "--json"), ("env",))


def _without_json(group: click.Group, path: str = "headwater") -> Iterator[str]:
    for name, command in commands_of(group).items():
        if isinstance(command, click.Group):
            yield from _without_json(command, f"{path} {name}")
        elif not any("--json" in option.opts for option in command.params):
            yield f"{path} {name}"


def test_every_command_takes_json() -> None:
    assert list(_without_json(main)) == []


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
