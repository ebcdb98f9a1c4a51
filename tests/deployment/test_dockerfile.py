"""The image: made of what is there, from the locks alone, for a user who may do nothing."""

import importlib.util
import json
import re
import tomllib
from importlib.metadata import requires
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.core.settings import Settings
from tests.deployment.compose import ROOT


class Instruction(NamedTuple):
    word: str
    rest: str


def _stages() -> list[list[Instruction]]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    # What stands before the first stage belongs to none.
    stages: list[list[Instruction]] = [[]]
    for line in filter(None, map(str.strip, whole.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append(Instruction(word, rest))
    return stages


GLOBAL, BUILD, FINAL = _stages()


def _values(stage: list[Instruction], word: str) -> list[str]:
    return [instruction.rest for instruction in stage if instruction.word == word]


def _copied() -> list[str]:
    return [source for rest in _values(BUILD, "COPY") for source in rest.split()[:-1]]


def test_both_stages_stand_on_one_pinned_image() -> None:
    # The environment that is copied between them links to the interpreter of its base.
    bases = {_values(stage, "FROM")[0].split(" AS ")[0] for stage in (BUILD, FINAL)}
    assert bases == {"${PYTHON_IMAGE}"}
    [argument] = _values(GLOBAL, "ARG")
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+", argument)


def test_copied_files_exist_and_reach_the_build() -> None:
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert patterns[0] == "*"
    allowed = {pattern[1:] for pattern in patterns if pattern.startswith("!")}
    for source in _copied():
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in allowed, source
    assert allowed <= {source.split("/")[0] for source in _copied()}


def test_the_whole_project_is_copied_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {source for source in _copied() if (ROOT / source).is_dir()} == set(packages)


def test_packages_come_from_the_locks_with_hashes() -> None:
    installs = [one for rest in _values(BUILD, "RUN") for one in rest.split("&&") if re.search(r"pip .*install", one)]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-index" in install, install
    assert any("-r requirements/runtime.lock" in one for one in installs)
    wheels = [one for rest in _values(BUILD, "RUN") for one in rest.split("&&") if "pip wheel" in one]
    assert all("--no-build-isolation" in one for one in wheels), "an isolated build fetches what no lock names"


def test_the_build_backend_comes_with_all_that_it_imports() -> None:
    found = re.search(r"/\^\((?P<names>[a-z|-]+)\)==/", "".join(_values(BUILD, "RUN")))
    assert found
    wanted, queue = set[str](), ["hatchling"]
    while queue:
        name = queue.pop()
        wanted.add(name)
        for text in requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": "", "python_version": "3.11"}):
                queue.append(canonicalize_name(requirement.name))
    assert set(found["names"].split("|")) == wanted
    lock = (ROOT / "requirements/dev.lock").read_text()
    assert all(re.search(rf"^{name}==", lock, re.MULTILINE) for name in wanted)


def test_the_final_stage_has_no_root_and_no_tools() -> None:
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", _values(FINAL, "USER")[-1])
    [run] = _values(FINAL, "RUN")
    assert re.search(r"pip uninstall --yes .*\bpip setuptools wheel", run)
    assert "install " not in run.replace("pip uninstall", "")
    assert _values(FINAL, "COPY") == ["--from=build /opt/headwater /opt/headwater"]
    last = [instruction.word for instruction in FINAL].index("USER")
    assert not {"RUN", "COPY", "ADD"} & {instruction.word for instruction in FINAL[last:]}
    assert not _values(BUILD, "ADD") + _values(FINAL, "ADD")


def test_it_runs_what_is_there() -> None:
    command = json.loads(_values(FINAL, "CMD")[0])
    assert command[:2] == ["python", "-m"]
    assert importlib.util.find_spec(f"{command[2]}.__main__")
    assert _values(FINAL, "EXPOSE") == [str(Settings().api_port)]
    environ = dict(pair.split("=", 1) for pair in _values(FINAL, "ENV")[0].split())
    settings = Settings.load(environ)
    assert settings.api_host == "0.0.0.0"
