"""A run in two processes: each has what it needs to itself, and what it finds is shown by the one that reports."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness.runs import pytest_run
from tests.support.distribution import LONG, Scopes

MODULE = """
import os, random, warnings
import pytest

@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("own")

def test_writes(folder, record_property):
    (folder / "seen").write_text(f"{os.getpid()} {random.random()}")
    assert [one.name for one in folder.iterdir()] == ["seen"]
    print("printed by", __name__)

@pytest.mark.filterwarnings("default")
def test_warns(): warnings.warn(f"a word of {__name__}")

def test_fails():
    print("printed by", __name__, "\\ud800")
    assert __name__ == "\\ud800"
"""


async def test_each_process_has_its_own_and_all_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(MODULE)
    async with pytest_run(tmp_path, MODULE, workers=2) as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "2 failed, 4 passed, 2 warnings" in output
    for name in ("test_module", "test_other"):
        assert f"printed by {name} " in output, output
        assert f"UserWarning: a word of {name}" in output
    seen = [path.read_text().split() for path in (tmp_path / "temporary").glob("process-*/own*/seen")]
    processes, numbers = zip(*seen, strict=True)
    assert len(set(processes)) == len(set(numbers)) == 2


async def test_the_first_failure_is_the_last(tmp_path: Path) -> None:
    source = MODULE + "".join(f"def test_after_{number}(): pass\n" for number in range(3))
    async with pytest_run(tmp_path, source, "--maxfail=1", workers=2) as run:
        code, output = await run.end()
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 failed" in output
    assert "stopping after 1 failures" in output


def item(nodeid: str, *, service: str | None = None) -> Any:
    fixtures = {"service": [SimpleNamespace(scope=service)]} if service else {}
    return SimpleNamespace(nodeid=nodeid, _fixtureinfo=SimpleNamespace(name2fixturedefs=fixtures))


def test_what_takes_longest_comes_first_and_services_are_shared() -> None:
    scopes = Scopes(
        [
            item("tests/a/test_1.py::test_a"),
            item("tests/a/test_1.py::test_b"),
            item("tests/a/test_2.py::test_a", service="session"),
            item("tests/a/test_3.py::test_a", service="module"),
            item("tests/webhooks/test_1.py::test_a", service="session"),
            item("tests/webhooks/test_2.py::test_a"),
            item(f"{LONG[0]}::test_a"),
        ]
    )

    def taken(*, with_service: bool) -> list[int] | None:
        scope = scopes.take(with_service=with_service)
        return scope.tests if scope is not None else None

    assert taken(with_service=False) == [4, 5]
    assert taken(with_service=True) == [6]
    assert taken(with_service=True) == [2], "it has a service already"
    scopes.give_back([2])
    assert taken(with_service=False) == [0, 1], "it need not start one"
    assert taken(with_service=False) == [3], "of its own in any case"
    assert taken(with_service=False) == [2], "there is nothing else"
    assert taken(with_service=True) is None
