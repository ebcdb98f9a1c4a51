"""The dump tool of the machine's MySQL or MariaDB server: found, or installed as the server is."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from app.local.apt import install_first, installer
from app.local.errors import StackError
from app.local.mysql_data import Flavour, detect_flavour
from app.local.screen import Screen

_PROGRAMS: Mapping[Flavour, tuple[str, ...]] = {"mariadb": ("mariadb-dump", "mysqldump"), "mysql": ("mysqldump",)}
_PACKAGES: Mapping[Flavour, tuple[str, ...]] = {
    "mariadb": ("mariadb-client",),
    "mysql": ("mysql-client-core", "mysql-client-core-8.4", "mysql-client-core-8.0"),
}
_SETTINGS: Mapping[Flavour, str] = {"mariadb": "HEADWATER_MARIADB_DUMP", "mysql": "HEADWATER_MYSQLDUMP"}
_SECONDS = 20


async def ensure_dump_tool(server: Path, screen: Screen, log: Path, folders: tuple[str, ...] | None = None) -> bool:
    """Whether a tool for this server is there, after an attempt to install one. Without one everything but backups
    works, so a failure is shown to the operator, and not raised. `folders` are searched, by default those of this
    machine."""
    try:
        flavour = await detect_flavour(server)
    except StackError as error:
        screen.say(str(error))
        return False
    given = os.environ.get(_SETTINGS[flavour])
    places = folders or (*os.get_exec_path(), str(server.parent), f"{server.parent}-client")
    if given or await _found(flavour, places):
        return True
    runner = installer()
    if runner is None:
        screen.say(f"no dump tool of {flavour} here, and none can be installed without apt-get and root (or sudo)")
        return False
    with screen.waiting(f"dump tool of {flavour}", f"apt-get to install {_PACKAGES[flavour][0]}; its log is {log}"):
        failure = await install_first(runner, _PACKAGES[flavour], log, screen)
    if failure is not None:
        screen.say(f"no dump tool of {flavour} could be installed, so its databases have no backups: {failure}")
    return await _found(flavour, places)


async def _found(flavour: Flavour, folders: tuple[str, ...]) -> bool:
    """Whether one of the folders has the tool. Either flavour's package may call its tool by the other's name."""
    for program in _PROGRAMS[flavour]:
        for folder in folders:
            found = shutil.which(program, path=folder)
            if found is not None and await asyncio.to_thread(_flavour, found) == flavour:
                return True
    return False


def _flavour(program: str) -> Flavour | None:
    try:
        result = subprocess.run(
            [program, "--no-defaults", "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            text=True,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if result.returncode != 0:
        return None
    return "mariadb" if "mariadb" in result.stdout.lower() else "mysql"
