"""Finding the MySQL server program for the stack: the operator's, the machine's, or the distribution's package."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from app.local.apt import install_first, installer
from app.local.errors import StackError
from app.local.screen import Screen

# Only root's PATH has the folders of servers.
_SERVER_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/usr/libexec")
_PROGRAMS = ("mariadbd", "mysqld")
_PACKAGES = ("mariadb-server-core", "default-mysql-server-core")
"""Packages with the server but without a service that the system would start; the second if there is no first."""


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
