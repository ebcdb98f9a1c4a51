"""What a person does with a keyboard and no pointer: every step of a flow that a test takes by these."""

from playwright.async_api import Locator, expect

_MOST = 150

# Which key leads from where the focus is towards the element; "" when it is there. An editor has its own inside.
_WAY = """
(one) => {
  const root = one.getRootNode();
  const target = root instanceof ShadowRoot ? root.host : one;
  const now = document.activeElement;
  if (now === target) return "";
  if (now === document.body || now === null) return target.closest("main") ? "start" : "Tab";
  const after = now.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING;
  return after ? "Tab" : "Shift+Tab";
}
"""
_SEEN = """
(one) => {
  const target = one.shadowRoot?.activeElement ?? one;
  return getComputedStyle(target).outlineStyle !== "none" || target !== one;
}
"""
_TOWARDS = """
(one, option) => {
  const chosen = [...one.options].findIndex((each) => each.label.startsWith(option));
  return chosen === one.selectedIndex ? "" : chosen > one.selectedIndex ? "ArrowDown" : "ArrowUp";
}
"""


async def tab_to(target: Locator) -> None:
    """From where the focus is, or from the page's beginning over the link that skips the navigation."""
    page = target.page
    await expect(target).to_be_enabled()
    for _ in range(_MOST):
        key: str = await target.evaluate(_WAY)
        if not key:
            break
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
    """In place of what stands there."""
    await tab_to(field)
    await field.page.keyboard.press("Control+A")
    await field.page.keyboard.type(text)


async def choose(field: Locator, option: str) -> None:
    """The option whose label begins so."""
    await tab_to(field)
    for _ in range(_MOST):
        key: str = await field.evaluate(_TOWARDS, option)
        if not key:
            return
        await field.page.keyboard.press(key)
    raise AssertionError(f"there is no option {option}")
