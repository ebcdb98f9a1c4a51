"""The addresses of the console's pages, as `pages/index.js` has them."""

import re
from pathlib import Path

_INDEX = Path(__file__).parents[2] / "app" / "console" / "files" / "pages" / "index.js"


def routes() -> list[str]:
    """Such as `/databases/:uuid`."""
    return re.findall(r'^\s*\{ path: "([^"]+)"', _INDEX.read_text(), flags=re.MULTILINE)
