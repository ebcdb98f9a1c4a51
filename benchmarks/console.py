"""`python -m benchmarks.console`: the console's list of databases in a real Chromium: what a visit loads, how soon it
is drawn and answers, how a long list scrolls, and what an hour of reading it again keeps in memory."""

import argparse
import asyncio
import os
import platform
import statistics
from typing import Any

import psutil
from playwright.async_api import Browser, BrowserContext, Page

from app.accounts.sessions.links import make_link
from app.store.session import fetch, fetch_scalar
from benchmarks.api import add_host
from benchmarks.api_servers import Account, account, running_servers
from tests.console.browser import WIDE, chromium

_DATABASES = 2_000
_LONG = 5_000
_VISITS = 20
_AGAIN = 360
"""Ten seconds apart they are an hour."""
_PAINT_MS, _INTERACTIVE_MS = 300, 500
_KILOBYTES = 60

_ROWS = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections, labels)
SELECT gen_random_uuid(), $1, 'db-' || lpad(n::text, 5, '0'), 'postgres', 'us-east-1', 'free',
       CASE WHEN n % 20 = 0 THEN 'paused' ELSE 'active' END, $2, 't' || $3::text || '-' || n, 10,
       ARRAY['env:' || CASE WHEN n % 10 < 3 THEN 'production' ELSE 'staging' END, 'owner:team-' || n % 100]
FROM generate_series(1, $4::int) AS n
"""

# When the list's first link is there: it can be followed, for its module has run.
_NOTE_FIRST_ROW = """
new MutationObserver((_, watching) => {
  if (!document.querySelector("tr[data-at] a")) return;
  window.firstRow = performance.now();
  watching.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
_TIMES = """
() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  interactive: window.firstRow,
  bytes: performance.getEntriesByType("resource").filter((one) => one.name.includes("/console/"))
    .reduce((sum, one) => sum + one.encodedBodySize, performance.getEntriesByType("navigation")[0].encodedBodySize),
  files: performance.getEntriesByType("resource").filter((one) => one.name.includes("/console/")).length + 1,
  shift: window.shift ?? 0,
})
"""
_NOTE_SHIFTS = """
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.shift = (window.shift ?? 0) + one.value;
}).observe({ type: "layout-shift", buffered: true });
"""
# A frame at a time by a third of the window, until the end has been in sight; the list reads on meanwhile.
_SCROLL = """
(last) => new Promise((done) => {
  const frames = [];
  let before = performance.now();
  let still = 0;
  const step = (now) => {
    frames.push(now - before);
    before = now;
    scrollBy(0, innerHeight / 3);
    still = document.querySelector("tbody tr:last-child").textContent.includes(last) ? still + 1 : 0;
    if (still > 5) done({ frames, rows: document.querySelectorAll("tr[data-at]").length });
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


async def _run(visits: int, again: int) -> None:
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, load {load}\n")
    async with running_servers() as servers, chromium() as browser:
        origin = servers.api
        host = await add_host()
        usual, long = await account("usual"), await account("long")
        for team, count in ((usual, _DATABASES), (long, _LONG)):
            await fetch(_ROWS, team.team_id, host, str(team.team_id), count)
        await fetch("ANALYZE databases")
        await _visits(browser, origin, usual, visits, psutil.Process(servers.api_pid))
        await _scroll(browser, origin, long)
        await _memory(browser, origin, usual, again)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


async def _visits(browser: Browser, origin: str, team: Account, visits: int, api: psutil.Process) -> None:
    state = await _signed_in(browser, origin, team)
    print(f"{visits} visits of the list of {_DATABASES:,} databases, in milliseconds from the navigation's start:")
    for name in ("first visit", "again"):
        before = sum(api.cpu_times()[:2])
        taken = [await _visit(browser, origin, state, again=name == "again") for _ in range(visits)]
        spent = 1000 * (sum(api.cpu_times()[:2]) - before) / visits
        paint, interactive = ([one[what] for one in taken] for what in ("paint", "interactive"))
        print(f"  {name:12} first paint   {_spread(paint)}   target {_PAINT_MS}")
        print(f"  {'':12} interactive   {_spread(interactive)}   target {_INTERACTIVE_MS}")
        if name == "first visit":
            page = statistics.median(one["processor"] for one in taken)
            print(f"  {'':12} processor     {page:6.1f} of the page's thread, {spent:6.1f} of the API")
            size = taken[0]["bytes"] / 1024
            print(f"  {'':12} loads         {size:.1f} KB in {taken[0]['files']} files, target {_KILOBYTES} KB")
            print(f"  {'':12} layout shift  {max(one['shift'] for one in taken):.4f}")


async def _visit(browser: Browser, origin: str, state: Any, *, again: bool) -> dict[str, float]:
    context = await browser.new_context(viewport=WIDE, storage_state=state)
    try:
        await context.add_init_script(_NOTE_FIRST_ROW)
        await context.add_init_script(_NOTE_SHIFTS)
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        for _ in range(2 if again else 1):
            await page.goto(f"{origin}/console/databases")
            await page.wait_for_function("() => window.firstRow")
        # The paint of what is there by now may not have been reported.
        await page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
        times: dict[str, float] = await page.evaluate(_TIMES)
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        busy = next(one["value"] for one in metrics if one["name"] == "TaskDuration")
        return times | {"processor": 1000 * busy}
    finally:
        await context.close()


async def _scroll(browser: Browser, origin: str, team: Account) -> None:
    page = await _opened(browser, origin, team)
    measured = await page.evaluate(_SCROLL, "db-00001")
    frames = sorted(measured["frames"])
    late = sum(frame > 50 for frame in frames)
    print(f"\nScrolling {_LONG:,} databases to the end, read on the way: {len(frames)} frames")
    print(f"  median {statistics.median(frames):.1f} ms, 99 of 100 within {frames[int(len(frames) * 0.99)]:.1f} ms,")
    print(f"  longest {frames[-1]:.1f} ms, {late} over 50 ms; at the end {measured['rows']} rows are in the page")
    await page.context.close()


async def _memory(browser: Browser, origin: str, team: Account, again: int) -> None:
    """The page's own timers, driven by a clock that we move on; its requests and what it draws are real."""
    page = await _opened(browser, origin, team, with_clock=True)
    sizes: list[float] = []
    for number in range(again + 1):
        if number % max(again // 6, 1) == 0:
            sizes.append(await _heap(page))
        async with page.expect_response("**/api/v1/databases?*"):
            await page.clock.run_for(10_000)
    print(f"\nReading the list again {again} times, ten seconds apart by the page's clock; heap in MB:")
    print("  " + ", ".join(f"{size:.2f}" for size in sizes))
    await page.context.close()


async def _heap(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return float(used["usedSize"]) / 1024**2


async def _opened(browser: Browser, origin: str, team: Account, *, with_clock: bool = False) -> Page:
    context = await browser.new_context(viewport=WIDE, storage_state=await _signed_in(browser, origin, team))
    page = await context.new_page()
    if with_clock:
        await page.clock.install()
    await page.goto(f"{origin}/console/databases")
    await page.locator("tr[data-at] a").first.wait_for()
    return page


async def _signed_in(browser: Browser, origin: str, team: Account) -> Any:
    user = await fetch_scalar(int, "SELECT user_id FROM memberships WHERE team_id = $1", team.team_id)
    token = (await make_link(user, origin, 600)).url.partition("#")[2]
    context: BrowserContext = await browser.new_context()
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    answer = await context.request.post(f"{origin}/api/v1/sign_ins/links", data={"token": token}, headers=headers)
    assert answer.status == 201, await answer.text()
    state = await context.storage_state()
    await context.close()
    return state


def _spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"median {statistics.median(ordered):6.1f}, slowest {ordered[-1]:6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=_VISITS)
    parser.add_argument("--again", type=int, default=_AGAIN)
    arguments = parser.parse_args()
    asyncio.run(_run(arguments.visits, arguments.again))


if __name__ == "__main__":
    main()
