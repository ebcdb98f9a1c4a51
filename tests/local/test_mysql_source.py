"""Where the MySQL server comes from: given, found, installed, or not at all."""

from pathlib import Path

import pytest
from rich.console import Console

from app.local.errors import StackError
from app.local.mysql_source import MysqlSource
from app.local.screen import Screen

# Installs the package that it knows by putting a server where the source looks.
_APT_GET = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in
  *update) exit 1 ;;
  *{package}) printf '#!/bin/sh\\n' > {folder}/bin/mysqld && chmod +x {folder}/bin/mysqld ;;
  *) exit 100 ;;
esac
"""


@pytest.fixture
def screen() -> Screen:
    return Screen(Console(record=True, quiet=True))


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_given_program_wins(tmp_path: Path) -> None:
    _program(tmp_path / "bin", "mysqld")
    given = _program(tmp_path / "other", "mysqld")
    assert MysqlSource(folders=(str(tmp_path / "bin"),)).find(given) == given


def test_a_given_program_that_is_none_is_an_error(tmp_path: Path) -> None:
    source = MysqlSource(folders=(str(tmp_path),))
    with pytest.raises(StackError, match="HEADWATER_MYSQLD"):
        source.find(tmp_path / "absent")
    (tmp_path / "text").touch()
    with pytest.raises(StackError, match="HEADWATER_MYSQLD"):
        source.find(tmp_path / "text")


@pytest.mark.parametrize("name", ["mariadbd", "mysqld"])
def test_the_machines_program_is_found(tmp_path: Path, name: str) -> None:
    program = _program(tmp_path / "bin", name)
    assert MysqlSource(folders=(str(tmp_path / "bin"),)).find() == program


@pytest.mark.parametrize("package", ["mariadb-server-core", "default-mysql-server-core"])
async def test_a_missing_server_is_installed(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    _apt_get(tmp_path, monkeypatch, package)
    source = MysqlSource(folders=(str(tmp_path / "bin"),))
    found = await source.find_or_install(None, screen, tmp_path / "log")
    assert found == tmp_path / "bin" / "mysqld"
    assert "--no-install-recommends" in (tmp_path / "calls").read_text()


async def test_without_any_way_to_a_server_there_is_none(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    _apt_get(tmp_path, monkeypatch, "some-other-package")
    source = MysqlSource(folders=(str(tmp_path / "bin"),))
    assert await source.find_or_install(None, screen, tmp_path / "log") is None


async def test_nothing_is_installed_unasked(tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    _apt_get(tmp_path, monkeypatch, "mariadb-server-core")
    source = MysqlSource(folders=(str(tmp_path / "bin"),), may_install=False)
    assert await source.find_or_install(None, screen, tmp_path / "log") is None
    assert not (tmp_path / "calls").exists()


def _apt_get(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    (folder / "bin").mkdir()
    tools = folder / "tools"
    path = _program(tools, "apt-get")
    path.write_text(_APT_GET.format(folder=folder, package=package))
    sudo = _program(tools, "sudo")
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
