"""Signing in by a link, a passkey or a provider, the sessions one has, and signing out; by the keyboard alone."""

import dataclasses

import pytest
from playwright.async_api import Page, Route, expect

from app.store.session import fetch
from tests.console.accessible import check_accessible
from tests.console.browser import NARROW, Console, Visit
from tests.console.keyboard import press, write
from tests.console.watch import Watch
from tests.sessions.provider import KNOWN, UNKNOWN
from tests.support.people import COOKIE, link_for, sign_in
from tests.support.store import store


async def test_a_person_signs_in_and_out(console: Console) -> None:
    service = console.service
    caller = await service.caller()
    token = await link_for(service.control_dsn, caller.user_id)
    elsewhere = await sign_in(service.http, service.control_dsn, caller)
    async with console.visitor() as visit:
        page = await visit.open("/sign-in")
        await check_accessible(page)
        await page.goto(f"/console/sign-in#{token}")
        await page.wait_for_url("**/console/")
        await page.get_by_role("heading", name="Databases", level=1).wait_for()
        (cookie,) = await visit.context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("headwater_session", True, "Strict")
        assert cookie["value"] not in await page.evaluate("() => document.cookie + JSON.stringify(localStorage)")

        # Nothing of the link is in the history.
        await page.go_back()
        assert token not in page.url
        await visit.open("/account")
        await page.get_by_role("row").filter(has_text="this one").wait_for()
        rows = page.get_by_role("table", name="Where you are signed in").locator("tbody tr")
        assert await rows.count() == 2
        await check_accessible(page)
        await page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
        await check_accessible(page)

        await press(page.get_by_role("button", name="End", exact=True))
        dialog = page.get_by_role("dialog", name="End this session")
        await press(dialog.get_by_role("button", name="End"))
        await dialog.wait_for(state="detached")
        await rows.nth(1).wait_for(state="detached")
        assert (await elsewhere.get("/sessions")).status_code == 401

        await press(page.get_by_role("button", name="Sign out everywhere"))
        await press(page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere"))
        await page.wait_for_url("**/console/sign-in")
        await page.get_by_text("headwater users sign-in-link").wait_for()
        assert await visit.context.cookies() == []


async def test_a_passkey_is_added_and_signs_in(console: Console) -> None:
    service = console.service
    caller = await service.caller()
    origin = console.origin.replace("127.0.0.1", "localhost")
    context = await console.new_context(base_url=origin)
    watch = Watch(context, origin)
    try:
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await session.send("WebAuthn.enable")
        authenticator = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        await session.send("WebAuthn.addVirtualAuthenticator", {"options": authenticator})
        await page.goto(f"/console/sign-in#{await link_for(service.control_dsn, caller.user_id)}")
        await page.get_by_role("heading", name="Databases", level=1).wait_for()
        await page.goto("/console/account")
        await page.get_by_text("No passkey yet").wait_for()
        await check_accessible(page)
        await write(page.get_by_label("Name of a new passkey"), "<img src=x>Laptop")
        await page.keyboard.press("Enter")
        await page.get_by_role("cell", name="<img src=x>Laptop", exact=True).wait_for()
        await press(page.get_by_role("button", name="Rename"))
        dialog = page.get_by_role("dialog")
        await write(dialog.get_by_label("Name"), "Laptop")
        await press(dialog.get_by_role("button", name="Rename"))
        await page.get_by_role("cell", name="Laptop", exact=True).wait_for()
        await check_accessible(page)

        await press(page.get_by_role("button", name="Sign out", exact=True))
        await press(page.get_by_role("dialog").get_by_role("button", name="Sign out"))
        await page.wait_for_url("**/console/sign-in")
        await page.goto("/console/databases")
        await press(page.get_by_role("link", name="Other ways to sign in"))
        await expect(page.get_by_role("heading", name="Sign in", level=1)).to_be_focused()
        await press(page.get_by_role("button", name="Sign in with a passkey"))
        await page.get_by_role("heading", name="Databases", level=1).wait_for()
        await page.goto("/console/account")
        await page.get_by_role("row").filter(has_text="this one").get_by_text("a passkey").wait_for()
        await press(page.get_by_role("button", name="Remove"))
        await press(page.get_by_role("dialog").get_by_role("button", name="Remove"))
        await page.get_by_text("No passkey yet").wait_for()
        watch.check()
    finally:
        await context.close()


async def test_a_link_over_somebody_who_is_signed_in_is_asked_for(console: Console) -> None:
    """It may be another person's, who would like to see what is entered from now on."""
    service = console.service
    other = await service.caller()
    token = await link_for(service.control_dsn, other.user_id)
    async with console.person() as visit:
        await visit.page.goto(f"/console/sign-in#{token}")
        await visit.page.get_by_text("You are signed in as").wait_for()
        await check_accessible(visit.page)
        assert token not in visit.page.url
        before = await visit.context.cookies()
        await press(visit.page.get_by_role("button", name="Follow the link"))
        await visit.page.get_by_role("heading", name="Databases", level=1).wait_for()
        assert await visit.context.cookies() != before


async def test_a_page_in_another_tab_follows_who_signs_in(console: Console) -> None:
    """It has the same cookie: what is done there would be done in their name."""
    service = console.service
    other = await service.caller()
    async with store(service.control_dsn):
        await fetch("UPDATE users SET name = 'Somebody Else' WHERE id = $1", other.user_id)
    async with console.person() as visit:
        page = await visit.open("/teams")
        await page.get_by_role("link", name="Test User").first.wait_for()
        beside = await visit.context.new_page()
        await beside.goto(f"/console/sign-in#{await link_for(service.control_dsn, other.user_id)}")
        await press(beside.get_by_role("button", name="Follow the link"))
        await beside.get_by_role("heading", name="Databases", level=1).wait_for()
        await expect(page.locator("header .person")).to_have_text("Somebody Else")
        await page.get_by_role("button", name="New team").wait_for()


@pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")
async def test_through_a_provider(console: Console, provider: str) -> None:
    """A real one on this machine, whose page asks the person; nothing of its answer stays in the address."""
    service = console.service
    ada = await service.caller()
    async with store(service.control_dsn):
        await fetch("UPDATE users SET email = 'ada@example.com', name = 'Ada' WHERE id = $1", ada.user_id)
    settings = {"OIDC_ISSUER": provider, "OIDC_CLIENT_ID": "headwater", "OIDC_CLIENT_SECRET": "s3cret"}
    async with service.another_api(**settings) as (http, _):
        other = Console(dataclasses.replace(service, http=http), console.browser)
        async with other.visitor() as visit:
            visit.watch.expect_host(provider)
            # Its page would like styles from the Internet.
            await visit.context.route("https://cdn.jsdelivr.net/**", lambda route: route.fulfill(body=""))
            page = await visit.open("/sign-in")
            button = page.get_by_role("button", name="Sign in through")
            await button.wait_for()
            await check_accessible(page)
            await press(button)
            await page.wait_for_url(f"{provider}/**")
            await _tell(page, KNOWN)
            await page.get_by_role("heading", name="Databases", level=1).wait_for()
            assert "code=" not in page.url
            await expect(page.get_by_role("link", name="Ada")).to_be_visible()
            await visit.open("/account")
            await page.get_by_role("row").filter(has_text="this one").wait_for()

            # Who has no account here is told so, and is nobody.
            await visit.context.clear_cookies()
            visit.watch.expect(401, 403)
            await visit.open("/sign-in")
            await press(button)
            await _tell(page, UNKNOWN)
            await page.locator(".error-note").get_by_text("sign_in_refused").wait_for()
            await check_accessible(page)
            assert "code=" not in page.url


async def _tell(page: Page, subject: str) -> None:
    """To the provider's page who one is. It has the focus in that field, once it is drawn."""
    field = page.locator("input[name=sub]")
    await expect(field).to_be_focused()
    await page.keyboard.type(subject)
    await page.keyboard.press("Enter")


@pytest.mark.parametrize(("status", "code"), [(500, "internal_error"), (429, "rate_limit_exceeded")])
async def test_who_is_signed_in_cannot_be_read(visit: Visit, status: int, code: str) -> None:
    """That says nothing of who they are: nobody is told to sign in, and it is read again when they ask."""
    answer = {"error": {"code": code, "message": "Come back later."}, "request_id": "req_unread"}
    visit.watch.expect(status)
    await visit.context.route("**/api/v1/session", lambda route: route.fulfill(status=status, json=answer))
    page = await visit.open("/teams")
    note = page.locator(".error-note")
    await expect(note).to_contain_text("Come back later.")
    await expect(note).to_contain_text("req_unread")
    await expect(page.get_by_role("heading", name="Teams", level=1)).to_be_visible()
    await check_accessible(page)
    await press(note.get_by_role("button", name="Try again"))
    await expect(note).to_contain_text("Come back later.")

    # A link isn't followed over the head of somebody who may be signed in.
    assert visit.caller is not None
    token = await link_for(visit.console.service.control_dsn, visit.caller.user_id)
    other = await visit.context.new_page()
    await other.goto(f"/console/sign-in#{token}")
    await expect(other.locator(".error-note")).to_contain_text("Come back later.")
    await check_accessible(other)
    await visit.context.unroute("**/api/v1/session")
    await press(other.locator(".error-note").get_by_role("button", name="Try again"))
    await other.get_by_text("You are signed in as").wait_for()
    await press(note.get_by_role("button", name="Try again"))
    await page.get_by_role("button", name="New team").wait_for()


async def test_several_sessions_cookies_are_said(visit: Visit) -> None:
    """A page of another path or port may have added one: who is signed in is nobody then, and learns why."""
    visit.watch.expect(401)
    cookie = {"name": COOKIE, "value": "another", "url": f"{visit.console.origin}/api/v1/session"}
    await visit.context.add_cookies([cookie])  # type: ignore[list-item]  # a cookie's shape
    page = await visit.open("/databases")
    await page.get_by_role("heading", name="Sign in").wait_for()
    await page.locator(".error-note").get_by_text("There are several session cookies").wait_for()
    await check_accessible(page)


@pytest.mark.parametrize("cookie_came", [True, False])
async def test_a_link_whose_answer_is_lost_is_not_followed_again(console: Console, cookie_came: bool) -> None:
    """It works once: to follow it again is refused. Who has the session's cookie all the same is signed in; others are
    told that no answer came."""
    service = console.service
    token = await link_for(service.control_dsn, (await service.caller()).user_id)
    followed: list[int] = []
    async with console.visitor() as visit:

        async def lose(route: Route) -> None:
            answer = await route.fetch(headers=route.request.headers | {"Sec-Fetch-Site": "same-origin"})
            followed.append(answer.status)
            if not cookie_came:
                await visit.context.clear_cookies()
            await route.abort("connectionreset")

        await visit.context.route("**/api/v1/sign_ins/links", lose)
        visit.watch.expect_losses()
        page = visit.page
        await page.goto(f"/console/sign-in#{token}")
        if cookie_came:
            await page.get_by_role("heading", name="Databases", level=1).wait_for()
        else:
            await page.locator(".error-note").get_by_text("No answer came").wait_for()
            await page.get_by_text("headwater users sign-in-link").wait_for()
            await check_accessible(page)
        await expect(page.locator(".connection")).to_have_count(0)
        assert followed == [201]
