"""Decisions: numbered, in the index, of one form, and short."""

import re
from pathlib import Path

from tests.docs.markdown import DECISIONS, ROOT, name_of
from tests.support.together import together


def test_they_are_numbered_without_gaps_and_all_in_the_index() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    index = (ROOT / "docs/decisions/README.md").read_text()
    linked = re.findall(r"^(\d+)\. \[(.+)\]\((.+)\)$", index, re.MULTILINE)
    assert [file for _, _, file in linked] == [path.name for path in DECISIONS]
    for number, title, file in linked:
        assert (ROOT / "docs/decisions" / file).read_text().startswith(f"# {number}. {title}\n")


@together("decision", DECISIONS, ids=name_of)
def test_each_has_the_form_and_fits_a_page(decision: Path) -> None:
    text = decision.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert re.search(r"^Accepted, \w+ \d{4}\.$", text, re.MULTILINE)
    assert len(text.splitlines()) <= 45
