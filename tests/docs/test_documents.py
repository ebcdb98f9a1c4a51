"""What the documents name exists: a document that drifts from the code is worse than none."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from textwrap import dedent

import click
import msgspec

from app.cli.main import main
from app.core.errors import AppError
from app.core.settings import PREFIX, Settings
from app.http import documentation, health
from app.local.stack_file import StackFile
from app.local.welcome import welcome
from app.quotas.plans import DEFAULT_PLANS
from app.upkeep.reconcile import host_resources, host_rules, logins
from tests.cli.command import commands_of
from tests.docs.markdown import DOCUMENTS, ROOT, blocks, commands, inline, name_of, tables
from tests.support.routes import describe
from tests.support.together import together
from workers.schedules import UPKEEP_SCHEDULES

each_document = together("document", DOCUMENTS, ids=name_of)
_FOLDERS = ("app", "workflows", "activities", "workers", "tests", "benchmarks", "deploy", "docs", "requirements")
_SOURCES = (".js", ".py", ".sh", ".sql", ".conf", ".yml", ".yaml", ".json", ".example")


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        if not target.startswith("https://"):
            assert (document.parent / target).exists(), target


@each_document
def test_make_has_the_targets(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in commands(document):
        if command.startswith("make "):
            target = command.split()[1]
            assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), command


@each_document
def test_the_command_line_has_the_commands(document: Path) -> None:
    for command in commands(document):
        found = re.search(r"(?:^|run --rm hosts )headwater ([a-z].*)", command)
        if found:
            _check_command(found[1].split())


def _check_command(words: list[str]) -> None:
    command: click.Command = main
    names = [word for word in words if re.fullmatch(r"[a-z][a-z|-]*", word)]
    while isinstance(command, click.Group) and names:
        alternatives = names.pop(0).split("|")
        known = commands_of(command)
        missing = set(alternatives) - set(known)
        assert not missing, f"headwater has no {missing}"
        command = known[alternatives[0]]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options, words


def test_every_schedule_is_documented() -> None:
    shown = {row[0].strip("`") for row in tables(ROOT / "docs/operating.md")}
    assert {upkeep.id for upkeep in UPKEEP_SCHEDULES} <= shown


def test_every_rule_of_the_check_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "app/upkeep/reconcile").glob("*.py")]
    rule = re.compile(r"'([a-z_]+)' AS rule|^[A-Z_]+ = \"([a-z]+(?:_[a-z]+)+)\"$", re.MULTILINE)
    found = {word or constant for text in sources for word, constant in rule.findall(text)}
    assert {host_resources.MISSING_EXTENSION, logins.RULE, "backup_stuck"} <= found
    # That is a note.
    assert found - {host_rules.FOREIGN} <= _first_cells(ROOT / "docs/operating.md")
    assert host_rules.FOREIGN in inline(ROOT / "docs/operating.md")


def _first_cells(document: Path) -> set[str]:
    """The code in the first cells of all tables."""
    return {code for row in tables(document) for code in re.findall(r"`([^`]+)`", row[0])}


def test_every_command_is_documented() -> None:
    documented = _first_cells(ROOT / "docs/operating.md")
    for name, command in commands_of().items():
        for verb in [f" {verb}" for verb in command.commands] if isinstance(command, click.Group) else [""]:
            assert f"headwater {name}{verb}" in documented


@each_document
def test_paths_exist(document: Path) -> None:
    for text in inline(document):
        if re.fullmatch(rf"(?:{'|'.join(_FOLDERS)})(?:/[\w./-]*)?", text) or re.fullmatch(
            r"[\w.-]+\.(?:yml|toml|md)", text
        ):
            assert (ROOT / text).exists(), text
    for command in commands(document):
        for path in re.findall(r"(?<![\w./])deploy/[\w./-]+", command):
            assert (ROOT / path).exists(), path


@each_document
def test_modules_exist(document: Path) -> None:
    names = [text for text in inline(document) if re.fullmatch(r"(?:app|workers|workflows)(?:\.\w+)+", text)]
    names += [found for command in commands(document) for found in re.findall(r"python -m ([\w.]+)", command)]
    for name in names:
        module, _, attribute = name.rpartition(".")
        if importlib.util.find_spec(module or name) and attribute[:1].isupper():
            name, attribute = module, attribute
            assert hasattr(importlib.import_module(name), attribute)
        assert importlib.util.find_spec(name), name


@each_document
def test_settings_exist(document: Path) -> None:
    known = {field.name for field in msgspec.structs.fields(Settings)}
    named = {found.lower() for found in re.findall(rf"{PREFIX}(\w+)", document.read_text())}
    assert named <= known


def test_every_setting_is_documented_with_its_default() -> None:
    document = ROOT / "docs/operating.md"
    for known in msgspec.structs.fields(Settings):
        assert f"`{PREFIX}{known.name.upper()}`" in document.read_text(), known.name
    rows = [row for row in tables(document) if PREFIX in row[0]]
    assert len(rows) > 15
    for name, default, _ in rows:
        if default.startswith("`"):
            variable = name.strip("`")
            field = variable.removeprefix(PREFIX).lower()
            documented = getattr(Settings.load({variable: default.strip("`")}), field)
            assert documented == getattr(Settings(), field), name


def test_plans_are_as_the_code_has_them() -> None:
    rows = {row[0].strip("`"): row[1:] for row in tables(ROOT / "docs/operating.md") if "hours" in row[1]}
    shown = {plan: [int(cell.split()[0]) for cell in row] for plan, row in rows.items()}
    rules = {name: plan.backups for name, plan in DEFAULT_PLANS.by_name.items()}
    assert shown == {
        name: [one.every_hours, one.keep_days, one.keep_last, one.test_every_days] for name, one in rules.items()
    }


def test_every_longer_form_is_documented() -> None:
    shown: set[str] = set()
    for row in tables(ROOT / "docs/testing.md"):
        names = re.findall(r"`([^`]+)`", row[0])
        shown |= {f"{names[0].rpartition('/')[0]}/{name.rpartition('/')[2]}" for name in names}
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "pytest.mark.soak" in path.read_text() and path.parent.name not in ("docs", "harness")
    }
    assert {one for one in marked if one not in shown and one.rpartition("/")[0] not in shown} == set()


def test_what_deployments_name_exists() -> None:
    files = [ROOT / "docker-compose.yml", *(path for path in (ROOT / "deploy").rglob("*") if path.is_file())]
    for path in files:
        for named in re.findall(r"(?<![\w./-])(?:app|docs|tests)/[\w./-]+\.\w+", path.read_text()):
            assert (ROOT / named).exists(), f"{name_of(path)}: {named}"


@each_document
def test_errors_have_the_status_that_is_said(document: Path) -> None:
    codes = {error.code: error.status for error in AppError.__subclasses__()}
    for status, code in re.findall(r"(\d{3})\s+`([a-z_]+)`", document.read_text()):
        assert codes.get(code) == int(status), code


@each_document
def test_names_from_the_code_are_in_the_code(document: Path) -> None:
    for text in inline(document):
        if re.fullmatch(r"[a-z]+(?:_[a-z]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+", text):
            assert text in _words_of_sources(), text


@cache
def _words_of_sources() -> frozenset[str]:
    files = (path for folder in _FOLDERS if folder not in ("docs", "tests") for path in (ROOT / folder).rglob("*"))
    mine = [ROOT / "docker-compose.yml", ROOT / ".env.example", ROOT / "docs/openapi.json"]
    sources = (path for path in [*files, *mine] if path.suffix in _SOURCES and path.is_file())
    return frozenset(word for path in sources for word in re.findall(r"\w+", path.read_text()))


def test_the_map_shows_every_folder() -> None:
    shown = {row[0].strip("`") for row in tables(ROOT / "README.md")}
    top = {folder for folder in _FOLDERS if folder not in ("app", "requirements")}
    inside = {f"app/{path.name}" for path in (ROOT / "app").iterdir() if (path / "__init__.py").is_file()}
    assert shown == top | inside


def test_the_first_request_is_the_one_that_the_stack_prints() -> None:
    [request] = [block for block in blocks(ROOT / "README.md") if "curl" in block]
    stack = StackFile(
        api_url="http://127.0.0.1:8000",
        api_key="pk_live_…",
        temporal_address="",
        temporal_namespace="",
        temporal_ui_url="",
        control_dsn="",
        hosts=[],
        processes={},
    )
    printed = welcome(stack, [], ROOT).partition("A first database:")[2].partition("The operator's")[0]
    assert dedent(printed).strip() == request.strip()


def test_addresses_of_the_api_are_served() -> None:
    served = {path.split("{")[0] for path in describe()["paths"]}
    served |= (
        health.live.paths
        | health.ready.paths
        | health.read_metrics.paths
        | documentation.page.paths
        | {"/openapi.json", "/api/v1", "/console"}
    )
    served |= {path.removeprefix("/api/v1") for path in served}
    pages = (ROOT / "app/console/files/pages/index.js").read_text()
    served |= {path.split("/:")[0] for path in re.findall(r'path: "([^"]+)"', pages)}
    for document in DOCUMENTS:
        for text in inline(document):
            path = re.fullmatch(r"(?:GET )?(?:http://127\.0\.0\.1:8000)?(/[a-z][\w./-]*)", text)
            # Every address below /console is answered with its page.
            if path and not path[1].startswith("/console/"):
                assert path[1] in served, f"{name_of(document)}: {text}"
