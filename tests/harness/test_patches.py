"""No test replaces what is private: what tests need to set is a parameter or a setting of what they construct, or a
public constant of its module."""

import ast
from collections.abc import Iterator

import pytest

from tests.harness.runs import ROOT
from tests.support.together import together

_PATCHING = {"setattr", "delattr", "patch", "object", "multiple"}
_LIBRARIES_OWN = {"tests/contract/fuzzing_hooks.py", "tests/support/patient_worker.py"}
"""They replace what is a library's, where it has no other way."""


def test_no_private_name_is_replaced() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 300, "the folder was found"
    places = {
        f"{name}:{line}"
        for path in files
        if (name := str(path.relative_to(ROOT))) not in _LIBRARIES_OWN
        for line in replaced(path.read_text())
    }
    assert places == set()


@together(
    "source",
    [
        'monkeypatch.setattr(module, "_SECONDS", 1)',
        'monkeypatch.setattr("app.module._SECONDS", 1)',
        'mock.patch("app.module._read")',
        'patch.object(module, "_read")',
        'setattr(module, "_read", None)',
        "module._read = None",
        "made.adapters._open[1] = None",
    ],
)
def test_each_way_is_seen(source: str) -> None:
    assert list(replaced(source)) == [1]


@pytest.mark.parametrize("source", ["self._read = None", 'monkeypatch.setattr(module, "SECONDS", 1)', "_read = None"])
def test_what_is_allowed(source: str) -> None:
    assert list(replaced(source)) == []


def replaced(source: str) -> Iterator[int]:
    """The lines where it is done."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in _PATCHING:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if any(_is_private(text.rpartition(".")[2]) for text in texts):
                yield node.lineno
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_is_others(target) for target in targets):
                yield node.lineno


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_others(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, ast.Attribute) or not _is_private(target.attr):
        return False
    return not (isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
