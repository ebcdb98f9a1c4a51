"""axe-core's rules, which cover WCAG 2.2 A and AA as far as a program can tell.

Tests look at many pages that differ from one another in texts and in the number of rows alone, and to look costs more
than to open the page. So a process looks at each shape of a page once.
"""

import asyncio
from functools import cache
from typing import Any, Final, Literal

from playwright.async_api import Page

from tests.clients.toolbox import packages

_RUN = """
async (only) => {
  const found = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
  return found.violations.map(({ id, help, nodes }) => ({
    id, help, nodes: nodes.slice(0, 5).map((node) => `${node.html} — ${node.failureSummary}`),
  }));
}
"""
# Elements, their attributes and whether they have text; of siblings that are alike the first. Of attributes the values
# that are words of markup, and so not names and numbers of what is shown.
_SHAPE = """
() => {
  const attribute = ({ name, value }) =>
    name === "class" || /^[a-z-]{0,16}$/.test(value) ? `${name}=${value}` : name;
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "";
  const shape = (element) => {
    const attributes = [...element.attributes].map(attribute).sort();
    const filled = [...element.childNodes].some(isText) || Boolean(element.value);
    const children = [...new Set([...element.children].map(shape))];
    return `${element.localName} ${attributes} ${filled} (${children})`;
  };
  return `${innerWidth} ${shape(document.documentElement)}`;
}
"""
_ALL = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
_OF_COLOURS = {"type": "rule", "values": ["color-contrast"]}
"""What can differ between the schemes."""
_accessible: set[int] = set()
"""Hashes of the shapes in which nothing was found."""
_SCHEMES: Final[tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...]] = (("light", _ALL), ("dark", _OF_COLOURS))


@cache
def _source() -> str:
    return (packages() / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def check_accessible(page: Page) -> None:
    """No violation of the page as it is now, in light and in dark."""
    shape = hash(await page.evaluate(_SHAPE))
    if shape in _accessible:
        return
    source = await asyncio.to_thread(_source)
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(source)
    for scheme, rules in _SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        found: list[dict[str, Any]] = await page.evaluate(_RUN, rules)
        assert not found, f"{page.url} in {scheme}:\n" + "\n".join(
            f"{one['id']}: {one['help']}\n  " + "\n  ".join(one["nodes"]) for one in found
        )
    await page.emulate_media(color_scheme="null")
    _accessible.add(shape)
