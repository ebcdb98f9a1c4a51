"""A page of another port of this host is of the same site: a browser sends our cookie with what it asks."""

from playwright.async_api import Page, Route

from tests.console.browser import Console
from tests.support.answers import data_of
from tests.support.people import sign_in
from tests.support.ports import free_port

FRAMED = """
async (address) => {
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  try {
    return frame.contentWindow.document.title;
  } catch {
    return "not ours to read";
  }
}
"""
SENT = """
async (address) => {
  const options = { method: "POST", credentials: "include", mode: "no-cors", body: '{"name": "stolen"}' };
  await fetch(address, { ...options, headers: { "Content-Type": "text/plain" } }).catch(() => {});
  const form = document.createElement("form");
  Object.assign(form, { method: "POST", action: address, enctype: "text/plain" });
  form.append(Object.assign(document.createElement("input"), { name: '{"name":"stolen","x":"', value: '"}' }));
  document.body.append(form);
  form.submit();
}
"""
READ = """
async (address) => {
  try {
    return (await fetch(address, { credentials: "include" })).status;
  } catch {
    return "refused";
  }
}
"""


async def test_a_page_of_another_port_gets_and_changes_nothing(console: Console) -> None:
    service = console.service
    caller = await service.caller()
    person = await sign_in(service.http, service.control_dsn, caller)
    context = await console.new_context()
    try:
        cookie = {"name": person.cookie, "value": person.token, "url": console.origin, "httpOnly": True}
        await context.add_cookies([cookie | {"sameSite": "Strict"}])  # type: ignore[list-item]  # a cookie's shape
        page = await context.new_page()
        beside = f"http://127.0.0.1:{free_port()}/"
        await page.route(beside, _serve)
        await page.goto(beside)
        assert await page.evaluate(READ, f"{console.origin}/api/v1/session") == "refused"
        await _frame(page, console.origin)
        async with page.expect_navigation():
            await page.evaluate(SENT, f"{console.origin}/api/v1/teams")
        assert "cross_origin_refused" in await page.content()
        assert [one["name"] for one in data_of(await caller.get("/teams"))] != ["stolen"]
        assert len(data_of(await caller.get("/teams"))) == 1
    finally:
        await context.close()


async def _serve(route: Route) -> None:
    await route.fulfill(status=200, content_type="text/html", body="<!doctype html><title>beside</title><p>Hello</p>")


async def _frame(page: Page, origin: str) -> None:
    """The browser shows its own page of errors in place of ours."""
    for path in ("/console/", "/console/sign-in", "/docs", "/api/v1/session"):
        assert await page.evaluate(FRAMED, f"{origin}{path}") == "not ours to read"
    for frame in page.frames[1:]:
        assert "Headwater" not in await frame.content()
        assert "swagger" not in await frame.content()
