"""`deploy/make-env.sh`: fresh secrets in a file that only its owner reads, and never over another's."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from app.core.secrets import SecretBox
from tests.deployment import compose


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    for name in (".env.example", "deploy/make-env.sh"):
        shutil.copy(compose.ROOT / name, tmp_path / name)
    return tmp_path


def _make(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(project / "deploy/make-env.sh"), *arguments]
    return subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False)


def _values(project: Path) -> dict[str, str]:
    lines = (project / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_it_fills_everything_in(project: Path) -> None:
    assert _make(project, "db.example.com").returncode == 0
    values = _values(project)
    assert values["ENGINE_PUBLIC_HOST"] == "db.example.com"
    SecretBox.from_setting(values["SECRET_KEYS"])
    passwords = [value for name, value in values.items() if name.endswith("_PASSWORD")]
    assert len(set(passwords)) == len(passwords) == 6
    assert all(len(password) == 48 and password.isalnum() for password in passwords)
    assert stat.S_IMODE((project / ".env").stat().st_mode) == 0o600
    for service in compose.services().values():
        compose.environment(service, values)


def test_two_installations_share_no_secret(project: Path) -> None:
    _make(project, "db.example.com")
    first = _values(project)
    (project / ".env").unlink()
    _make(project, "db.example.com")
    assert {name for name, value in _values(project).items() if first[name] == value} == {"ENGINE_PUBLIC_HOST"}


def test_it_never_writes_over_what_is_there(project: Path) -> None:
    _make(project, "db.example.com")
    before = (project / ".env").read_bytes()
    assert _make(project, "other.example.com").returncode != 0
    assert (project / ".env").read_bytes() == before
    assert not list(project.glob(".env.draft*"))


def test_it_wants_a_name(project: Path) -> None:
    assert _make(project).returncode == 2
    assert not (project / ".env").exists()


def test_git_leaves_it_alone() -> None:
    assert "/.env" in (compose.ROOT / ".gitignore").read_text().splitlines()
