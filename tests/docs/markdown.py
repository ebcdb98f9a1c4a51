"""The project's documents, and what they name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "docs/decisions/README.md",
    *DECISIONS,
]

_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks(document: Path) -> list[str]:
    """Code that stands by itself."""
    return [found[1] for found in _FENCE.finditer(document.read_text())]


def inline(document: Path) -> list[str]:
    """Code within sentences, one line each."""
    return [" ".join(found[1].split()) for found in _CODE.finditer(_FENCE.sub("", document.read_text()))]


def commands(document: Path) -> list[str]:
    """Everything that a reader may paste into a shell, a line each."""
    lines = [line for block in blocks(document) for line in block.replace("\\\n", " ").splitlines()]
    return [line.partition(" #")[0].strip() for line in lines] + inline(document)


def tables(document: Path) -> list[list[str]]:
    """The cells of all rows, headings and rules left out."""
    rows = [line.strip("|").split("|") for line in document.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]
