"""Installing packages of a distribution that has apt-get."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from app.local.errors import StackError
from app.local.processes import Command, run_to_end
from app.local.screen import Screen

_TIMEOUT_SECONDS = 600
_STOP_SECONDS = 120


def installer() -> tuple[str, ...] | None:
    """The command prefix that gives apt-get the rights to install, without asking for a password."""
    apt_get = shutil.which("apt-get")
    if apt_get is None:
        return None
    if os.geteuid() == 0:
        return (apt_get,)
    sudo = shutil.which("sudo")
    if sudo is None or subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode != 0:
        return None
    return (sudo, "-n", apt_get)


async def install_first(
    apt_get: tuple[str, ...], packages: Sequence[str], log: Path, screen: Screen
) -> StackError | None:
    """Installs the first of these packages that can be; returns the last one's failure if none can."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    async def run(*arguments: str) -> None:
        # Another installation may be running: wait for it instead of failing.
        argv = (*apt_get, "-o", "DPkg::Lock::Timeout=120", *arguments)
        # An installation that is killed leaves the packages' own records broken, so that no later one works.
        await run_to_end(
            Command(argv=argv, log=log, environ=environ, stop_signal=signal.SIGINT, stop_seconds=_STOP_SECONDS),
            _TIMEOUT_SECONDS,
        )

    try:
        await run("update")
    except StackError:
        screen.say("the package lists could not be brought up to date; trying with those that are here")
    failure = None
    for package in packages:
        try:
            await run("install", "-y", "--no-install-recommends", package)
        except StackError as error:
            failure = error
        else:
            return None
    return failure
