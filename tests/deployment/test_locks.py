"""The lock files: each names all that what it names depends on. They are installed without resolving (`--no-deps`),
because pip takes the hash of a package for none of its extras: the next release of one would end every installation."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deployment.compose import ROOT

_LEFT_OUT = {
    line
    for line in (ROOT / "requirements/not-in-containers.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


@pytest.mark.parametrize("extras", [(), ("dev",)], ids=["runtime", "dev"])
def test_what_the_package_depends_on_is_locked(extras: tuple[str, ...]) -> None:
    locked = _locked("dev" if extras else "runtime")
    found = {"headwater": {"", *extras}}
    queue = [("headwater", extra) for extra in ("", *extras)]
    while queue:
        for requirement in _requirements(*queue.pop()):
            name = canonicalize_name(requirement.name)
            if name in _LEFT_OUT and not extras:
                continue
            assert name in locked, requirement
            new = {"", *requirement.extras} - found.setdefault(name, set())
            found[name] |= new
            queue += [(name, extra) for extra in new]
    assert len(found) > 50


def _locked(name: str) -> set[str]:
    lines = (ROOT / f"requirements/{name}.lock").read_text().splitlines()
    return {line.partition("==")[0] for line in lines if line[:1].isalpha()}


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    """Of this machine, for one extra of a package, or for none where that is empty."""
    for requirement in map(Requirement, requires(name) or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def test_make_installs_the_lock_without_resolving() -> None:
    command = ["make", "--dry-run", "--always-make", ".venv/.installed"]
    planned = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    [install] = [shlex.split(line) for line in planned.splitlines() if "requirements/dev.lock" in line]
    assert {"--require-hashes", "--no-deps"} <= set(install)


def test_what_is_installed_fits_together() -> None:
    command = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0, run.stdout
