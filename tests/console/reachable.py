"""What a page has to be for who has a keyboard and no pointer, or a small window.

WCAG 2.2, 1.4.10, 2.1.1, 2.1.2, 2.4.3, 2.4.7, 2.4.11 and 2.5.8.
"""

import contextlib
from typing import Any

from playwright.async_api import Page, TimeoutError

WIDTHS = (320, 768, 1100)
_MOST_STOPS = 300

# What Tab has to lead to, in the order of the page; and how each stop looks as it gets the focus. A positive tabindex
# would come first.
_WATCH = """
(within) => {
  const text = (one) => (one.labels?.[0]?.textContent || one.ariaLabel || one.textContent).trim().slice(0, 40);
  const named = (one) => `${one.tagName.toLowerCase()} ${text(one)}`;
  const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0
    && !one.closest("details:not([open]) > :not(summary)");
  const place = document.querySelector(within);
  // An editor is a shadow root with something to type into.
  const expected = [...place.querySelectorAll("*")].filter((one) => shown(one) && !one.disabled &&
    (one.tabIndex >= 0 || one.shadowRoot?.querySelector("[contenteditable=true], [tabindex='0']")));
  window.watching?.abort();
  const watching = new AbortController();
  const seen = { expected: expected.map(named), stops: [], left: false };
  document.addEventListener("focusin", () => {
    const outer = document.activeElement;
    let one = outer;
    while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    if (outer === place) return;
    if (!place.contains(outer)) return (seen.left = true);
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
    const over = document.elementFromPoint(box.left + Math.min(box.width / 2, 200), (top + bottom) / 2);
    seen.stops.push({
      name: named(outer),
      at: expected.indexOf(outer),
      marked: style.outlineStyle !== "none" || outer !== one,
      clear: [...(outer.labels ?? []), outer].some((part) => part.contains(over)) || over?.contains(outer) || false,
    });
  }, { signal: watching.signal });
  window.watching = watching;
  window.seen = seen;
}
"""
_FLOWS = """
() => [...document.querySelectorAll("main *")].filter((one) => {
  const style = getComputedStyle(one);
  const scrolls = one.tabIndex >= 0 || one.matches("input, select, textarea, .visually-hidden");
  if (scrolls || one.closest("pre, .editor, svg, canvas") || style.textOverflow === "ellipsis") return false;
  return style.overflowX !== "visible" && one.scrollWidth > one.clientWidth + 1;
}).map((one) => `${one.className || one.tagName} is ${one.scrollWidth} wide and shows ${one.clientWidth}`)
"""
# Above or below: what is in a line is no part of what its block can scroll.
_CLIPPED = """
() => [...document.querySelectorAll("main *")].filter((one) => {
  const block = one.parentElement;
  if (!one.checkVisibility() || one.closest("pre, .editor, svg, .visually-hidden")) return false;
  if (!["hidden", "clip"].includes(getComputedStyle(block).overflowY)) return false;
  const [inner, outer] = [one, block].map((each) => each.getBoundingClientRect());
  return inner.height > 0 && (inner.top < outer.top - 0.5 || inner.bottom > outer.bottom + 0.5);
}).map((one) => `${one.className || one.tagName} is cut off above or below: ${one.textContent.slice(0, 40)}`)
"""
# 24 by 24 px at least, but for links in a sentence, whose line says how high they are (2.5.8, "Inline"). A box to tick
# has its label, which is pressed as well.
_SMALL = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")].filter((one) => {
  if (!one.checkVisibility({ visibilityProperty: true }) || one.closest(".skip-link")) return false;
  const inline = getComputedStyle(one).display === "inline";
  const label = one.matches("input[type=checkbox], input[type=radio]") ? one.labels[0] : null;
  const [box, more] = [one, label ?? one].map((part) => part.getBoundingClientRect());
  return !inline && (Math.max(box.width, more.width) < 24 || Math.max(box.height, more.height) < 24);
}).map((one) => {
  const { width, height } = one.getBoundingClientRect();
  return `${one.outerHTML.slice(0, 120)}: ${width.toFixed(1)} by ${height.toFixed(1)}`;
})
"""
_ROUND = """
(within) => seen.left || document.activeElement === document.body
  || (within === "dialog" && seen.stops.length >= seen.expected.length)
"""


async def check_keyboard(page: Page, within: str = "main") -> None:
    """Tab leads to everything in that part of the page that can be used, in the page's order, and out of it again;
    what has the focus is seen to have it, and nothing covers it."""
    await page.evaluate(_WATCH, within)
    await page.locator(within).focus()
    for _ in range(_MOST_STOPS):
        await page.keyboard.press("Tab")
        # After the last stop the focus goes to the page's frame, or to what follows; in a dialog to its first.
        if await page.evaluate(_ROUND, within):
            break
    seen: dict[str, Any] = await page.evaluate("() => watching.abort() ?? seen")
    names = [stop["name"] for stop in seen["stops"]]
    reached = [stop["at"] for stop in seen["stops"]]
    assert reached == [*range(len(seen["expected"]))], f"{page.url}: {names}, and there are {seen['expected']}"
    for what in ("marked", "clear"):
        assert not (wrong := [stop["name"] for stop in seen["stops"] if not stop[what]]), (
            f"{page.url}: not {what}: {wrong}"
        )


async def check_windows(page: Page) -> None:
    """In a window of 320 px and in wider ones nothing is cut off, and nothing has to be scrolled sideways but what says
    that it can be."""
    before = page.viewport_size
    assert before is not None
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 640})
        # A chart follows its window when it has been told of it.
        with contextlib.suppress(TimeoutError):
            await page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth", timeout=10_000)
        wide: int = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        cut: list[str] = await page.evaluate(_FLOWS) + await page.evaluate(_CLIPPED)
        assert wide <= 0, f"{page.url} is {wide} px wider than its window of {width}"
        assert not cut, f"{page.url} at {width}: {cut}"
    await page.set_viewport_size(before)


async def check_targets(page: Page) -> None:
    """What is pressed is large enough for a finger."""
    small: list[str] = await page.evaluate(_SMALL)
    assert not small, f"{page.url}: {small}"
