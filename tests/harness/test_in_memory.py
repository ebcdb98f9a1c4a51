"""The folder of a run in memory: nobody else removes it while the run goes on, and nothing of it stays."""

import os
from pathlib import Path

import pytest

from tests.support import in_memory
from tests.support.in_memory import run_folder

ROOT = "PYTEST_DEBUG_TEMPROOT"


def named(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pytest is told of; forgets it."""
    folder = Path(os.environ[ROOT])
    monkeypatch.delenv(ROOT)
    return folder


def test_a_folder_lives_as_long_as_its_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(in_memory, "MEMORY", tmp_path)
    monkeypatch.delenv(ROOT, raising=False)
    first = run_folder()
    if first is None:
        pytest.skip("this machine has no room for it")
    folder = named(monkeypatch)
    (folder / "kept").write_text("x")
    second = run_folder()
    assert second is not None
    other = named(monkeypatch)
    assert (folder / "kept").exists(), "its run goes on"
    second.close(keep=False)
    assert not other.exists()
    for data, file in (("postgres/data", "PG_VERSION"), ("mysql/data", "ibdata1")):
        (folder / data / "base").mkdir(parents=True)
        (folder / data / file).touch()
    first.close(keep=True)
    assert [*folder.glob("*/*")] == [], "it is large, and explains nothing"
    assert (folder / "kept").exists(), "somebody is to look at it"
    assert str(folder) in capfd.readouterr().err
    for number in range(2):
        later = run_folder()
        assert later is not None
        assert folder.exists() == (number == 0), "until another has failed"
        named(monkeypatch)
        later.close(keep=number == 0)


def test_another_place_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ROOT, str(tmp_path))
    assert run_folder() is None
    assert os.environ[ROOT] == str(tmp_path)
