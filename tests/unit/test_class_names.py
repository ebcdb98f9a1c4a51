"""Names of classes: each stands for one thing in the whole of the production code, so that a search finds only that."""

import ast
from collections import defaultdict
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("app", "activities", "workers", "workflows")


def test_each_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for folder in _FOLDERS:
        for path in (_ROOT / folder).rglob("*.py"):
            # A migration has copies of the tables as they were.
            if "migrations" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(f"{path.relative_to(_ROOT)}:{node.lineno}")
    assert len(places) > 500, "the folders were found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
