"""Which pg_dump serves which server."""

from pathlib import Path

import pytest

from app.engines.base import EngineError
from app.engines.postgres.dumps.tools import DumpTools


def programs(folder: Path, version: str) -> Path:
    folder.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


async def test_an_older_one_is_never_taken(tmp_path: Path) -> None:
    old = programs(tmp_path / "old", "15.9 (Debian 15.9-1)")
    new = programs(tmp_path / "new", "99.1")
    tools = DumpTools({"PATH": str(old), "HEADWATER_POSTGRES_BIN": str(new)})
    assert await tools.folder(99) == (new, "pg_dump 99.1")
    with pytest.raises(EngineError, match=r"100 or later .*99\.1.*install the package postgresql-client-100"):
        await tools.folder(100)


async def test_one_of_its_own_version_is_preferred(tmp_path: Path) -> None:
    newer = programs(tmp_path / "newer", "99.1")
    tools = DumpTools({"PATH": str(newer)})
    folder, name = await tools.folder(18)
    assert (folder == newer) == (name == "pg_dump 99.1")
    assert int(name.removeprefix("pg_dump ").split(".")[0]) >= 18


async def test_programs_that_do_not_run_are_passed_over(tmp_path: Path) -> None:
    broken = programs(tmp_path / "broken", "99.1")
    (broken / "pg_dump").write_text("#!/nowhere/at/all\n")
    with pytest.raises(EngineError, match="install"):
        await DumpTools({"PATH": str(broken)}).folder(99)
