"""The package, as an operator installs and runs it: outside the checkout, in a folder with nothing of ours."""

import asyncio
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email.parser import Parser
from email.policy import default
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from packaging.requirements import Requirement

from tests.deployment.compose import ROOT
from tests.local.stack_process import StackProcess
from tests.support.waiting import until

_PACKAGES = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, ROOT], check=True)
    [wheel] = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel in it. What the wheel depends on it borrows from this one's, where
    Headwater itself is not found: it is linked there by a `.pth` file, and those of borrowed folders don't count."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    uv = Path(sys.executable).with_name("uv")
    python = folder / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel], check=True)
    return folder / "bin"


def test_everything_in_the_packages_is_in_the_wheel(wheel: Path) -> None:
    files = (path for package in _PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    left_out = {path for pattern in _left_out() for path in ROOT.glob(pattern)}
    here = {
        str(path.relative_to(ROOT))
        for path in files
        if "__pycache__" not in path.parts and not left_out.intersection((path, *path.parents))
    }
    assert left_out
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == here


def _left_out() -> list[str]:
    """Patterns of what the wheel doesn't have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]
    return patterns


def test_it_asks_for_what_the_locks_have(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser(policy=default).parsestr(archive.read(name).decode())
    lines = (ROOT / "requirements/constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0]: line.partition("==")[2].partition(" ;")[0] for line in lines}
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert len(wanted) > 20
    for requirement in wanted:
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


def test_the_command_says_which_version_it_is(programs: Path) -> None:
    run = subprocess.run([programs / "headwater", "--version"], check=True, stdout=subprocess.PIPE, text=True, cwd="/")
    assert run.stdout == f"headwater, version {version('headwater')}\n"


async def test_it_runs_in_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    # Folders of others that are called as ours are.
    for package in _PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit('not ours')")
    command = str(programs / "headwater")
    stack = StackProcess(tmp_path / ".headwater", (command, "up"), folder=str(tmp_path), HOME="")
    try:
        await stack.start()
        headers = {"Authorization": f"Bearer {stack.stack.api_key}", "Idempotency-Key": str(uuid4())}
        async with httpx.AsyncClient(base_url=stack.stack.api_url, headers=headers, timeout=90) as http:
            made = await http.post("/api/v1/databases?wait=true&timeout=60", json={"name": "first"})
            assert made.status_code in (201, 202), made.text
            uuid = made.json()["data"]["uuid"]

            async def is_active() -> bool:
                """On a crowded machine it may become so later than any answer waits."""
                shown = await http.get(f"/api/v1/databases/{uuid}")
                return bool(shown.json()["data"]["status"] == "active")

            await until(is_active)
            assert (await http.get("/docs/swagger-ui.css")).status_code == 200
        listing = await asyncio.create_subprocess_exec(
            command, "databases", "list", cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await listing.communicate()
        assert uuid in output.decode()
        assert await stack.stop(signal.SIGINT) == 0
        assert stack.survivors() == []
    finally:
        await stack.stop()
