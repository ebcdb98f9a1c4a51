"""The image: made of what is there, from the locks alone, for a user who may do nothing."""

import importlib.util
import json
import shlex
import tomllib
from importlib.metadata import requires
from typing import NamedTuple

import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from app.core.settings import Settings
from app.engines.mysql.dumps.tools import USUAL_FOLDERS
from tests.deployment.compose import ROOT


class Instruction(NamedTuple):
    word: str
    rest: str


def _stages() -> list[list[Instruction]]:
    parser = DockerfileParser(str(ROOT / "Dockerfile"))
    # What stands before the first stage belongs to none.
    stages: list[list[Instruction]] = [[]]
    for read in parser.structure:
        instruction = Instruction(read["instruction"], read["value"])
        if instruction.word == "FROM":
            stages.append([])
        if instruction.word != "COMMENT":
            stages[-1].append(instruction)
    return stages


GLOBAL, BUILD, MYSQL, MARIADB, POSTGRES, FINAL = _stages()


def _values(stage: list[Instruction], word: str) -> list[str]:
    return [instruction.rest for instruction in stage if instruction.word == word]


def _commands(stage: list[Instruction]) -> list[list[str]]:
    """The words of each command that the stage runs, read as a shell does."""
    commands: list[list[str]] = []
    for run in _values(stage, "RUN"):
        commands.append([])
        for word in _words(run):
            if set(word) <= set("&|;"):
                commands.append([])
            else:
                commands[-1].append(word)
    return commands


def _words(run: str) -> shlex.shlex:
    words = shlex.shlex(run, posix=True, punctuation_chars="&|;")
    words.whitespace_split = True
    return words


def _copied() -> list[str]:
    return [source for rest in _values(BUILD, "COPY") for source in rest.split()[:-1]]


def test_both_stages_stand_on_one_pinned_image() -> None:
    # The environment that is copied between them links to the interpreter of its base.
    bases = {_values(stage, "FROM")[0].split(" AS ")[0] for stage in (BUILD, MARIADB, FINAL)}
    assert bases == {"${PYTHON_IMAGE}"}
    assert _values(MYSQL, "FROM") == ["${MYSQL_IMAGE} AS mysql-tools"]
    assert _values(POSTGRES, "FROM") == ["${POSTGRES_IMAGE} AS postgres-tools"]
    argument, *_ = _values(GLOBAL, "ARG")
    name, _, image = argument.partition("=")
    repository, _, tag = image.partition(":")
    version, kind, _ = tag.split("-")
    assert (name, repository, kind, len(Version(version).release)) == ("PYTHON_IMAGE", "python", "slim", 3)


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
    installs = [one for one in _commands(BUILD) if one[0] == "pip" and "install" in one]
    assert len(installs) == 3
    for install in installs:
        assert {"--require-hashes", "--no-index"} & set(install), install
        assert "--no-deps" in install, "a newer release of a package with an extra would fail it, see test_locks.py"
    assert any(one[-2:] == ["-r", "requirements/runtime.lock"] for one in installs)
    [wheel] = [one for one in _commands(BUILD) if one[:2] == ["pip", "wheel"]]
    assert "--no-build-isolation" in wheel, "an isolated build fetches what no lock names"


def test_the_build_backend_comes_with_all_that_it_imports() -> None:
    [program] = [one[1] for one in _commands(BUILD) if one[0] == "awk"]
    names = set(program.partition("(")[2].partition(")")[0].split("|"))
    wanted, queue = set[str](), ["hatchling"]
    while queue:
        name = queue.pop()
        wanted.add(name)
        for text in requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": "", "python_version": "3.11"}):
                queue.append(canonicalize_name(requirement.name))
    assert names == wanted
    locked = {line.partition("==")[0] for line in (ROOT / "requirements/dev.lock").read_text().splitlines()}
    assert wanted <= locked


def test_the_final_stage_has_no_root_and_no_tools() -> None:
    user, _, group = _values(FINAL, "USER")[-1].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    uninstall, *others = _commands(FINAL)
    assert uninstall[:5] == ["python", "-m", "pip", "uninstall", "--yes"]
    assert uninstall[-3:] == ["pip", "setuptools", "wheel"]
    assert {command[0] for command in others} == {"groupadd", "useradd", "mkdir", "chown"}, "and none that installs"
    assert _values(FINAL, "COPY") == [
        "--from=build /opt/headwater /opt/headwater",
        "--from=mysql-tools /opt/mysql /opt/mysql",
        "--from=mariadb-tools /opt/mariadb /opt/mariadb",
        "--from=postgres-tools /opt/postgresql /opt/postgresql",
    ]
    last = [instruction.word for instruction in FINAL].index("USER")
    assert not {"RUN", "COPY", "ADD"} & {instruction.word for instruction in FINAL[last:]}
    assert not _values(BUILD, "ADD") + _values(FINAL, "ADD")


@pytest.mark.parametrize(("stage", "program"), [(MYSQL, "mysqldump"), (MARIADB, "mariadb-dump")])
def test_each_dump_tool_is_where_workers_look_for_it(stage: list[Instruction], program: str) -> None:
    flavour = "mysql" if stage is MYSQL else "mariadb"
    place = f"/opt/{flavour}/bin"
    assert place in USUAL_FOLDERS
    [run] = _values(stage, "RUN")
    assert run.endswith(f"&& {place}/{program} --no-defaults --version"), "the build fails where it doesn't run"


def test_it_runs_what_is_there() -> None:
    command = json.loads(_values(FINAL, "CMD")[0])
    assert command[:2] == ["python", "-m"]
    assert importlib.util.find_spec(f"{command[2]}.__main__")
    assert _values(FINAL, "EXPOSE") == [str(Settings().api_port)]
    environ = dict(pair.split("=", 1) for pair in _values(FINAL, "ENV")[0].split())
    settings = Settings.load(environ)
    assert settings.api_host == "0.0.0.0"
