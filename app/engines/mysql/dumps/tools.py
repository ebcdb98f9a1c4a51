"""Finding the dump tool that belongs to a server: MySQL's own `mysqldump`, or MariaDB's own `mariadb-dump`."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.core import subprocesses
from app.engines.errors import EngineError
from app.engines.mysql.flavours import MARIADB, Flavour

VERSION_SECONDS = 20
USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/local/mysql/bin", "/opt/mysql/bin", "/opt/mariadb/bin")
_VERSION = re.compile(r"(?:Distrib|Ver|from) (?P<numbers>[0-9]+\.[0-9]+\.[0-9]+)")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's tool is called, and where it comes from."""

    setting: str
    programs: tuple[str, ...]
    package: str


_MYSQL = Wanted(setting="HEADWATER_MYSQLDUMP", programs=("mysqldump",), package="mysql-client-core")
_MARIADB = Wanted(setting="HEADWATER_MARIADB_DUMP", programs=("mariadb-dump", "mysqldump"), package="mariadb-client")


class DumpTool(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    version: str

    @property
    def name(self) -> str:
        return f"{Path(self.path).name} {self.version}"


async def find_tool(flavour: Flavour, server_version: str, environ: Mapping[str, str] | None = None) -> DumpTool:
    """The tool for this server: of its flavour, and of its version's release series or newer. Raises `EngineError`
    that says what to install."""
    wanted = _MARIADB if flavour is MARIADB else _MYSQL
    environ = os.environ if environ is None else environ
    given = environ.get(wanted.setting)
    found: list[str] = []
    for path in [given] if given else _candidates(wanted, environ):
        tool = await _examined(path, flavour)
        if tool is None:
            continue
        if _series(tool.version) >= _series(server_version):
            return tool
        found.append(f"{path} is {tool.version}")
    place = f"{wanted.setting} names {given}" if given else f"no {wanted.programs[0]} for it was found"
    raise EngineError(
        f"this server is {flavour.name} {_numbers(server_version)}, and {'; '.join(found) or place}: dumps need "
        f"{flavour.name}'s own {wanted.programs[0]} of this version or newer. Install the package {wanted.package} "
        f"where the workers run, or name the program with {wanted.setting}."
    )


def _candidates(wanted: Wanted, environ: Mapping[str, str]) -> list[str]:
    folders = [folder for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    folders += USUAL_FOLDERS
    if server := environ.get("HEADWATER_MYSQLD"):
        beside = Path(server).parent
        folders += [str(beside), str(beside.parent / "bin"), f"{beside}-client"]
    paths = (shutil.which(program, path=folder) for folder in folders for program in wanted.programs)
    return list(dict.fromkeys(path for path in paths if path))


async def _examined(path: str, flavour: Flavour) -> DumpTool | None:
    """The tool at this path; None unless the program runs and is of this flavour."""
    said = await subprocesses.output_of(path, "--no-defaults", "--version", env={}, seconds=VERSION_SECONDS)
    if said is None:
        return None
    version = _VERSION.findall(said)
    if not version or ("mariadb" in said.lower()) != (flavour is MARIADB):
        return None
    return DumpTool(path=path, version=version[-1])


def _numbers(version: str) -> str:
    """The last three numbers: an old client is greeted with `5.5.5-` before them."""
    found: list[str] = re.findall(r"[0-9]+\.[0-9]+\.[0-9]+", version)
    return found[-1] if found else version


def _series(version: str) -> tuple[int, ...]:
    """The numbers that decide what a tool can read: `9.7` of 9.7.4."""
    return tuple(int(part) for part in _numbers(version).split(".")[:2])
