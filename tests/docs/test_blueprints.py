"""The guide to blueprints names the rules that there are."""

import re
from pathlib import Path

from tests.docs.markdown import ROOT, tables

GUIDE = ROOT / "docs/blueprints.md"
SOURCES = sorted(path for folder in ("blueprints", "dialects") for path in (ROOT / "app" / folder).rglob("*.py"))


def test_every_rule_of_warnings_is_in_the_guide_and_none_else() -> None:
    text = "\n".join(path.read_text() for path in SOURCES if _gives_warnings(path))
    rules = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)",\s', text))
    rules |= set(re.findall(r"\(([a-z]+(?:-[a-z]+)+)\)\"", text))

    shown = {rule for row in tables(GUIDE) for rule in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", row[0])}
    assert rules == shown


def _gives_warnings(path: Path) -> bool:
    return path.name in ("notices.py", "analyzer.py", "validation.py")
