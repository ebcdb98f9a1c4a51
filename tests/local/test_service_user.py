"""Whom database servers run as, and what they can reach."""

import os
import shutil
from pathlib import Path

import psutil
import pytest

from app.local.errors import StackError
from app.local.postgres import PostgresService, find_programs
from app.local.processes import Command, run_to_end
from app.local.service_user import NOBODY, service_user
from app.local.services import start
from tests.support.ports import free_port
from tests.support.waiting import LIMIT_SECONDS

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder inside one that nobody but its owner can pass."""
    (tmp_path / "closed" / "inner").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    return tmp_path / "closed" / "inner"


@needs_root
async def test_a_server_has_one_capability_and_only_where_it_needs_it(closed: Path, tmp_path: Path) -> None:
    capabilities = [await _effective_capabilities(path, tmp_path) for path in (Path("/bin/true"), closed)]
    assert capabilities == [0, 1 << 2]


@needs_root
async def test_postgres_runs_as_nobody_from_and_in_a_closed_folder(closed: Path) -> None:
    package = find_programs(None).parents[1]
    for part in package.parent.glob(f"{package.name}*"):  # the libraries lie beside the package
        shutil.copytree(part, closed / part.name, symlinks=True)
    programs = closed / package.name / "pginstall" / "bin"
    service = PostgresService(
        "postgres", folder=closed / "data", port=free_port(), log=closed / "log", programs=programs, durable=False
    )
    await service.prepare()
    child = await start(service)
    try:
        assert psutil.Process(child.pid).uids().real == NOBODY
    finally:
        await child.stop()


@needs_root
def test_without_setpriv_root_is_shown_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="util-linux"):
        service_user(tmp_path, death_signal="KILL")


async def _effective_capabilities(path: Path, folder: Path) -> int:
    log = folder / f"capabilities-{path.name}"
    argv = (*service_user(path, death_signal="KILL").prefix, "/bin/cat", "/proc/self/status")
    await run_to_end(Command(argv=argv, log=log), timeout=LIMIT_SECONDS)
    lines = dict(line.split(":\t", 1) for line in log.read_text().splitlines())
    return int(lines["CapEff"], 16)
