"""Webhook endpoints: made, tried, changed, ended; what was sent and answered; the snippets, on a real delivery.
By the keyboard alone."""

import dataclasses
import re
from pathlib import Path

from playwright.async_api import expect

from tests.clients.toolbox import run
from tests.console.accessible import check_accessible
from tests.console.browser import Console, Visit
from tests.console.keyboard import choose, press, write
from tests.support.answers import data_of
from tests.support.receiver import Receiver, answer, receiver

SECRET = re.compile(r"^whsec_[A-Za-z0-9+/=]{44}$")
DOCUMENTED = Path("docs/webhooks.md").read_text()
MARKUP = b"<script>window.owned=1</script><img src=x onerror=window.owned=1>"


async def test_from_its_url_to_a_replay(console: Console, tmp_path: Path) -> None:
    async with receiver(tmp_path) as receiving:
        receiving.replies["/hook"] = answer(500, body=MARKUP)
        settings = {"WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32", "WEBHOOK_CA_FILE": str(receiving.ca_file)}
        async with console.service.another_api(**settings) as (http, _):
            other = Console(dataclasses.replace(console.service, http=http), console.browser)
            async with other.person() as visit:
                secret = await _make(visit, receiving)
                await _look_at_a_delivery(visit)
                await _verify(visit, receiving, secret, tmp_path)
                await _change_and_end(visit, receiving, secret)
                assert await visit.page.evaluate("window.owned") is None


async def _make(visit: Visit, receiving: Receiver) -> str:
    page = await visit.open("/webhooks")
    await page.get_by_text("No endpoints yet").wait_for()
    await press(page.get_by_role("link", name="New endpoint"))
    url = page.get_by_label("URL")
    visit.watch.expect(422)
    for refused in ("javascript:window.owned=1", "https://10.0.0.1/"):
        await write(url, refused)
        await press(page.get_by_role("button", name="Create"))
        await page.locator(".field-error").wait_for()
    await check_accessible(page)
    await write(url, receiving.url("/hook"))
    await press(page.get_by_label("All of them"), "Space")
    await press(page.get_by_label("database.deleted"), "Space")
    await press(page.get_by_role("button", name="Create"))
    await page.get_by_text("Keep this signing secret now").wait_for()
    shown = page.locator(".secret code")
    await expect(shown).to_have_text(SECRET)
    secret = await shown.inner_text()
    await check_accessible(page)
    await press(page.get_by_role("link", name="To the endpoint"))
    await page.get_by_role("button", name="Send a test").wait_for()
    assert secret not in await page.content()
    return secret


async def _look_at_a_delivery(visit: Visit) -> None:
    page = visit.page
    sent = page.get_by_role("table", name="Deliveries").get_by_role("link", name="ping")
    # What has been answered is over: to press again is to do it again.
    for times in (1, 2):
        await press(page.get_by_role("button", name="Send a test"))
        await page.get_by_text("answered 500").wait_for()
        await expect(sent).to_have_count(times)
    await check_accessible(page)
    await choose(page.get_by_label("Status"), "delivered")
    await page.get_by_text("No such deliveries").wait_for()
    await choose(page.get_by_label("Status"), "failed")
    await press(sent.first)
    answered = page.get_by_role("region", name="Answer to attempt 1")
    await answered.wait_for()
    assert await answered.inner_text() == MARKUP.decode()
    assert '"event": "ping"' in await page.get_by_role("region", name="Body that is sent").inner_text()
    await check_accessible(page)
    await press(page.get_by_role("button", name="Replay"))
    await press(page.get_by_role("dialog").get_by_role("button", name="Send again"))
    await page.locator("h1 + .status").get_by_text("pending").wait_for()
    await press(page.get_by_role("link", name="Endpoint"))


async def _verify(visit: Visit, receiving: Receiver, secret: str, folder: Path) -> None:
    """The snippets that the page shows take what arrived, and nothing else."""
    page = visit.page
    await press(page.get_by_role("link", name="Verifying"))
    await check_accessible(page)
    texts = {
        name: await page.get_by_role("region", name=name).locator("pre").inner_text()
        for name in ("Python", "Node.js", "Shell")
    }
    for text in texts.values():
        # The documentation's own tests run these.
        assert all(part in DOCUMENTED for part in text.split("\n\n"))
    got = receiving.of("/hook")[0]
    for body, verdict in ((got.body, "True"), (got.body + b" ", "False")):
        values = f"body, headers, secret = {body!r}, {got.headers!r}, {secret!r}\n"
        call = "print(is_ours_and_fresh(body, headers, secret))"
        (folder / "verify.py").write_text(f"{texts['Python']}\n{values}{call}\n")
        assert (await run("python3", "verify.py", folder=folder)).strip() == verdict


async def _change_and_end(visit: Visit, receiving: Receiver, secret: str) -> None:
    page = visit.page
    await press(page.get_by_role("link", name="Settings"))
    await press(page.get_by_label("database.paused"), "Space")
    await press(page.get_by_role("button", name="Save"))
    await page.get_by_text("Saved.").wait_for()
    await press(page.get_by_role("button", name="Rotate the secret"))
    await press(page.get_by_role("dialog").get_by_role("button", name="Rotate"))
    renewed = page.get_by_role("dialog").locator(".secret code")
    await expect(renewed).to_have_text(SECRET)
    assert await renewed.inner_text() != secret
    await check_accessible(page)
    await press(page.get_by_role("dialog").get_by_role("button", name="Done"))
    await press(page.get_by_role("button", name="Delete the endpoint"))
    dialog = page.get_by_role("dialog")
    await write(dialog.get_by_role("textbox"), page.url.split("/")[-2])
    await press(dialog.get_by_role("button", name="Delete"))
    await page.get_by_role("cell", name="revoked").wait_for()
    await check_accessible(page)


async def test_settings_undo_nothing_of_others(visit: Visit) -> None:
    """What they change while the form is open stays, and is shown."""
    caller = visit.caller
    assert caller is not None
    endpoint = data_of(await caller.post("/webhook_endpoints", {"url": "https://hooks.example.com/old"}), 201)
    at = f"/webhook_endpoints/{endpoint['id']}"
    page = await visit.open(f"/webhooks/{endpoint['id']}/settings")
    await write(page.get_by_label("URL"), "https://hooks.example.com/new")
    data_of(await caller.patch(at, {"events": ["database.paused"]}))
    await press(page.get_by_role("button", name="Save"))
    await page.get_by_text("Saved.").wait_for()
    changed = data_of(await caller.get(at))
    assert (changed["url"], changed["events"]) == ("https://hooks.example.com/new", ["database.paused"])
    await expect(page.get_by_label("database.paused")).to_be_checked()
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
