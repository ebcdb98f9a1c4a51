"""`.ci/run` with a `make` in place of ours, whose tests fail as often as they are to."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.runs import ROOT

MAKE = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in test*) ;; *) exit 0 ;; esac
if [ -s "$FAILURES" ]; then
  read -r code what < "$FAILURES"; sed -i 1d "$FAILURES"
  echo "$what"
  echo "===== 1 failed, 1 passed in 2.00s ====="
  echo "make: *** [Makefile:24: test] Error $code"
  exit 2
fi
echo "===== 2 passed in 1.00s ====="
"""
ONE_TEST = "FAILED tests/test_a.py::test_one - AssertionError"
CHECKED = "check"
TESTED = "test"
AGAIN = "test ARGS=--last-failed --last-failed-no-failures none"
LONGER = "test ARGS=-m soak"


class Ci:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        script = folder / "clone" / ".ci" / "run"
        script.parent.mkdir(parents=True)
        script.write_text((ROOT / ".ci" / "run").read_text())
        make = folder / "make"
        make.write_text(MAKE)
        make.chmod(0o755)

    def run(
        self, *options: str, failures: tuple[int, ...] = (), what: str = ONE_TEST
    ) -> subprocess.CompletedProcess[str]:
        """`failures` are pytest's exit codes, one a run, until its tests pass. `what` is the line that names it."""
        (self._folder / "failures").write_text("".join(f"{code} {what}\n" for code in failures))
        environ = {
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "CALLS": str(self._folder / "calls"),
            "FAILURES": str(self._folder / "failures"),
        }
        script = self._folder / "clone" / ".ci" / "run"
        return subprocess.run(
            ["bash", script, *options],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return (self._folder / "calls").read_text().splitlines()


@pytest.fixture
def ci(tmp_path: Path) -> Ci:
    return Ci(tmp_path)


def test_all_pass(ci: Ci) -> None:
    ended = ci.run()
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == "===== 2 passed in 1.00s ====="
    assert ci.calls == [CHECKED, TESTED]


def test_a_second_try(ci: Ci) -> None:
    ended = ci.run(failures=(1,))
    assert ended.returncode == 0
    assert "The first time: ===== 1 failed, 1 passed in 2.00s =====" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "===== 2 passed in 1.00s ====="
    assert ci.calls == [CHECKED, TESTED, AGAIN]


@pytest.mark.parametrize("options", [(), ("--nightly",)])
def test_two_tries_that_fail(ci: Ci, options: tuple[str, ...]) -> None:
    """Both results are said, and the last line is pytest's."""
    ended = ci.run(*options, failures=(1, 1))
    assert ended.returncode == 2, "make's"
    assert ended.stdout.splitlines()[-2:] == [
        "The first time: ===== 1 failed, 1 passed in 2.00s =====",
        "===== 1 failed, 1 passed in 2.00s =====",
    ]
    assert ci.calls == [CHECKED, TESTED, AGAIN]


def test_a_run_that_did_not_come_to_its_end_gets_no_second_try(ci: Ci) -> None:
    assert ci.run(failures=(3,)).returncode == 1
    assert ci.calls == [CHECKED, TESTED]


@pytest.mark.parametrize("what", ["ERROR gw1 - Different tests were collected", "ERROR tests/test_a.py - SyntaxError"])
def test_nor_does_one_whose_tests_could_not_be_collected(ci: Ci, what: str) -> None:
    assert ci.run(failures=(1,), what=what).returncode == 1
    assert ci.calls == [CHECKED, TESTED]


def test_a_fixture_that_failed_is_tried_again(ci: Ci) -> None:
    assert ci.run(failures=(1,), what="ERROR tests/test_a.py::test_one[a b] - OSError").returncode == 0
    assert ci.calls == [CHECKED, TESTED, AGAIN]


def test_a_second_try_fails_the_nightly_form(ci: Ci) -> None:
    ended = ci.run("--nightly", failures=(1,))
    assert ended.returncode == 1
    assert "These needed a second try:\nFAILED tests/test_a.py::test_one" in ended.stdout
    assert ci.calls == [CHECKED, TESTED, AGAIN]


def test_the_nightly_form_runs_the_longer_forms(ci: Ci) -> None:
    ended = ci.run("--nightly")
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == "===== 2 passed in 1.00s ====="
    assert ci.calls == [CHECKED, TESTED, LONGER]
