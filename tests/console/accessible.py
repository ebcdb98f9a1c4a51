"""axe-core's rules, which cover WCAG 2.2 A and AA as far as a program can tell."""

import asyncio
from functools import cache
from typing import Any

from playwright.async_api import Page

from tests.clients.toolbox import packages

_RUN = """
async () => {
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await axe.run(document, { runOnly: rules });
  return found.violations.map(({ id, help, nodes }) => ({
    id, help, nodes: nodes.slice(0, 5).map((node) => `${node.html} — ${node.failureSummary}`),
  }));
}
"""


@cache
def _source() -> str:
    return (packages() / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def check_accessible(page: Page) -> None:
    """No violation of the page as it is now, in light and in dark."""
    source = await asyncio.to_thread(_source)
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(source)
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found: list[dict[str, Any]] = await page.evaluate(_RUN)
        assert not found, f"{page.url} in {scheme}:\n" + "\n".join(
            f"{one['id']}: {one['help']}\n  " + "\n  ".join(one["nodes"]) for one in found
        )
    await page.emulate_media(color_scheme=None, reduced_motion=None)
