"""`headwater env`: one line that puts the command and the matching clients on the path."""

import asyncio
import os
import shlex
import sys
from pathlib import Path

from tests.cli.command import Headwater

_PROGRAM = Path(sys.executable).with_name("headwater")


async def _shell(script: str, **environ: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-ec", script, stdout=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"], **environ}
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()


async def test_in_a_shell(tmp_path: Path) -> None:
    home = tmp_path / "a home's folder"
    look = 'for name in headwater pg_dump psql; do command -v $name; done; echo "$HEADWATER_HOME"'
    script = f'eval "$({shlex.quote(str(_PROGRAM))} env)"; cd /; {look}'
    headwater, pg_dump, psql, named = (await _shell(script, HEADWATER_HOME=str(home))).splitlines()
    assert Path(headwater) == _PROGRAM
    assert Path(pg_dump).parent == Path(psql).parent
    assert named == str(home)
    assert " 18." in await _shell(f"{shlex.quote(pg_dump)} --version")


async def test_without_the_embedded_servers(headwater: Headwater, tmp_path: Path) -> None:
    lacking = headwater.with_settings(POSTGRES_BIN=str(tmp_path))
    assert (await lacking.json("env"))["path"] == [str(_PROGRAM.parent)]
    assert len((await headwater.json("env"))["path"]) == 2
