"""What a person does with a keyboard and no pointer: every step of a flow that a test takes by these."""

import re

from playwright.async_api import Locator, expect

_MOST = 60
_TYPED = 20
"""Characters."""

# Which key leads from where the focus is towards the element, and how often it has to be pressed, about: a field for a
# date has several stops, and what scrolls is one. "" when the focus is there, and stays there when the page has drawn
# itself and run what is due then. An editor has its own inside.
_WAY = """
async (one) => {
  const root = one.getRootNode();
  const target = root instanceof ShadowRoot ? root.host : one;
  if (document.activeElement === target) await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  const now = document.activeElement;
  if (now === target) return ["", 0];
  if (now === document.body || now === null) return [target.closest("main") ? "start" : "Tab", 1];
  const after = now.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING;
  const within = target.closest("dialog") ?? document;
  const can = "a[href], button, input, select, textarea, summary, [tabindex='0'], .editor";
  const stops = [...within.querySelectorAll(can)].filter(
    (each) => each === now || each === target || (!each.disabled && each.tabIndex >= 0 && each.checkVisibility()),
  );
  const [from, to] = [stops.indexOf(now), stops.indexOf(target)];
  return [after ? "Tab" : "Shift+Tab", from < 0 || to < 0 ? 1 : Math.max(1, Math.abs(to - from))];
}
"""
_SEEN = """
(one) => {
  const target = one.shadowRoot?.activeElement ?? one;
  // The button in a field for a date shows it by itself.
  return getComputedStyle(target).outlineStyle !== "none" || target !== one || one.type === "datetime-local";
}
"""
_TOWARDS = """
(one, option) => {
  const chosen = [...one.options].findIndex((each) => each.value === option || each.label.startsWith(option));
  return chosen === one.selectedIndex ? "" : chosen > one.selectedIndex ? "ArrowDown" : "ArrowUp";
}
"""


async def tab_to(target: Locator) -> None:
    """From where the focus is, or from the page's beginning over the link that skips the navigation."""
    page = target.page
    await expect(target).to_be_enabled()
    for _ in range(_MOST):
        key, times = await target.evaluate(_WAY)
        if not key:
            break
        for _ in range(times):
            await page.keyboard.press("Tab" if key == "start" else key)
        if key == "start" and await page.evaluate("document.activeElement.className === 'skip-link'"):
            await page.keyboard.press("Enter")
    else:
        raise AssertionError(f"Tab doesn't lead to {target}")
    assert await page.evaluate(f"({_SEEN})(document.activeElement)"), f"{target} doesn't show that it has the focus"


async def press(target: Locator, key: str = "Enter") -> None:
    """A button or a link; Space ticks a box."""
    await tab_to(target)
    await target.page.keyboard.press(key)


async def write(field: Locator, text: str) -> None:
    """In place of what stands there. A long text is pasted, for a page draws itself at each key."""
    await tab_to(field)
    keyboard = field.page.keyboard
    await keyboard.press("Control+A")
    await (keyboard.type(text) if len(text) <= _TYPED else keyboard.insert_text(text))


async def choose(field: Locator, option: str) -> None:
    """The option that has this value, or whose label begins so."""
    await tab_to(field)
    for _ in range(_MOST):
        key: str = await field.evaluate(_TOWARDS, option)
        if not key:
            return
        await field.page.keyboard.press(key)
    raise AssertionError(f"there is no option {option}")


async def set_moment(field: Locator, moment: str) -> None:
    """Such as 2030-01-02T03:04, before noon, into the parts of a field for a date and a time."""
    year, month, day, hour, minute = re.split("[-T:]", moment)
    await tab_to(field)
    keyboard = field.page.keyboard
    await keyboard.type(f"{month}{day}{year}")
    await keyboard.press("Tab")
    await keyboard.type(f"{hour}{minute}AM")
    await expect(field).to_have_value(moment)
