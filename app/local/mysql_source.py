"""Finding the MySQL server program for the stack: the operator's, the machine's, or the distribution's package."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.local.errors import StackError
from app.local.processes import Command, run_to_end
from app.local.screen import Screen

# Only root's PATH has the folders of servers.
_SERVER_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/usr/libexec")
_PROGRAMS = ("mariadbd", "mysqld")
_PACKAGES = ("mariadb-server-core", "default-mysql-server-core")
"""Packages with the server but without a service that the system would start; the second if there is no first."""

_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class MysqlSource:
    """Where to look for a server. `folders` are searched in order."""

    folders: tuple[str, ...]
    may_install: bool = True

    @classmethod
    def of_machine(cls) -> "MysqlSource":
        return cls(folders=(*os.get_exec_path(), *_SERVER_FOLDERS))

    def find(self, given: Path | None = None) -> Path | None:
        """The given program, else the machine's, else None. Raises `StackError` when the given one isn't a program."""
        path = os.pathsep.join(self.folders)
        if given is not None:
            found = shutil.which(given, path=path)
            if found is None:
                raise StackError(f"HEADWATER_MYSQLD names {given}, which is not a program that can be run")
            return Path(found).absolute()
        names = (shutil.which(name, path=path) for name in _PROGRAMS)
        return next((Path(found).absolute() for found in names if found), None)

    async def find_or_install(self, given: Path | None, screen: Screen, log: Path) -> Path | None:
        """Like `find`, but installs the distribution's package if necessary. If that is impossible it says why and
        returns None."""
        found = self.find(given)
        if found is not None or not self.may_install:
            return found
        runner = installer()
        if runner is None:
            screen.say("no MySQL server here, and none can be installed without apt-get and root (or sudo)")
            return None
        with screen.waiting("MySQL server program", f"apt-get to install {_PACKAGES[0]}; its log is {log}"):
            failure = await install_first(runner, _PACKAGES, log, screen)
        if failure is not None:
            screen.say(f"no MySQL server could be installed: {failure}")
        return self.find()


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
        await run_to_end(Command(argv=argv, log=log, environ=environ), _TIMEOUT_SECONDS)

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
