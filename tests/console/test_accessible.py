"""A fault of a page is found, also among what is alike; what has been looked at is not looked at again."""

import pytest

from tests.console.accessible import check_accessible
from tests.console.browser import Console

PAGE = '<!doctype html><html lang="en"><title>Page</title><main><h1>Page</h1><ul>{}</ul></main></html>'
ROW = "<li><button>{}</button></li>"
PALE = '<li><button class="pale">Pale</button><style>.pale { color: #aaa; background: #fff }</style></li>'


async def test_each_shape_of_a_page_is_looked_at_once(console: Console) -> None:
    async with console.visitor() as visit:
        page = visit.page
        await page.set_content(PAGE.format(ROW.format("One")))
        await check_accessible(page)
        await page.evaluate("look = axe.run; axe.run = () => { throw Error('it has looked') }; 0")
        await page.set_content(PAGE.format(ROW.format("Another") * 3))
        await check_accessible(page)
        await page.evaluate("axe.run = look; 0")
        for fault, rule in ((ROW.format(""), "button-name"), (PALE, "color-contrast")):
            await page.set_content(PAGE.format(ROW.format("One") * 3 + fault))
            for _ in range(2):
                with pytest.raises(AssertionError, match=rule):
                    await check_accessible(page)
