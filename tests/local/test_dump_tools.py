"""Where the dump tool of a MySQL or MariaDB server comes from."""

from pathlib import Path

import pytest
from rich.console import Console

from app.local.dump_tools import ensure_dump_tool
from app.local.screen import Screen

_APT_GET = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in
  *update) exit 1 ;;
  *{package}) mv {folder}/package {folder}/bin/mariadb-dump ;;
  *) exit 100 ;;
esac
"""


@pytest.fixture
def screen() -> Screen:
    return Screen(Console(record=True, quiet=True))


def _program(path: Path, says: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return _program(tmp_path / "server" / "mariadbd", "mariadbd  Ver 10.11.19-MariaDB")


def _apt_get(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    _program(folder / "package", "mariadb-dump  Ver 10.19 Distrib 10.11.19-MariaDB")
    apt_get = _program(folder / "apt" / "apt-get", "")
    apt_get.write_text(_APT_GET.format(folder=folder, package=package))
    sudo = _program(folder / "apt" / "sudo", "")
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (folder / "bin").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder / 'apt'}:/usr/bin:/bin")


async def test_a_tool_that_is_there_is_taken(
    tmp_path: Path, server: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    _apt_get(tmp_path, monkeypatch, "mariadb-client")
    _program(tmp_path / "bin" / "mysqldump", "mysqldump  Ver 10.19 Distrib 10.11.19-MariaDB")
    assert await ensure_dump_tool(server, screen, tmp_path / "log", (str(tmp_path / "bin"),))
    assert not (tmp_path / "calls").exists()


async def test_a_missing_tool_is_installed(
    tmp_path: Path, server: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the other engine's is none."""
    _apt_get(tmp_path, monkeypatch, "mariadb-client")
    _program(tmp_path / "bin" / "mysqldump", "mysqldump  Ver 9.7.4 for Linux")
    assert await ensure_dump_tool(server, screen, tmp_path / "log", (str(tmp_path / "bin"),))
    assert "--no-install-recommends mariadb-client" in (tmp_path / "calls").read_text()


async def test_without_any_way_to_a_tool_it_says_so(
    tmp_path: Path, server: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    _apt_get(tmp_path, monkeypatch, "some-other-package")
    assert not await ensure_dump_tool(server, screen, tmp_path / "log", (str(tmp_path / "bin"),))
