"""What a script in a page of ours could not do, if somebody got one in; and the other page of the same origin."""

import pytest

from tests.console.browser import Console, Visit

# Each is something that a page without a policy lets a script do.
ATTEMPTS = """
async (expected) => {
  const refused = new Set();
  document.addEventListener("securitypolicyviolation", (one) => refused.add(one.effectiveDirective));
  const put = (name, fill) => {
    const element = document.createElement(name);
    try {
      fill(element);
      document.body.append(element);
    } catch {
      refused.add(`${name}: thrown`);
    }
    return element;
  };
  const away = "https://evil.example/";
  put("p", (one) => (one.innerHTML = "<img src=x onerror=window.owned=1>"));
  put("script", (one) => (one.text = "window.owned = 1"));
  put("script", (one) => one.append("window.owned = 1"));
  put("style", (one) => one.append("body { color: red }"));
  put("b", (one) => one.setAttribute("style", "color: red"));
  put("a", (one) => one.setAttribute("onclick", "window.owned = 1")).click();
  put("img", (one) => (one.src = away));
  put("iframe", (one) => (one.src = away));
  put("base", (one) => (one.href = away));
  put("form", (one) => (one.action = away)).submit();
  new FontFace("x", `url(${away})`).load().catch(() => {});
  await fetch(away).catch(() => {});
  // Not where the test's own tool evaluates, which the policy doesn't bind.
  await new Promise((done) => setTimeout(() => {
    try {
      eval("window.owned = 1");
    } catch {
      refused.add("eval: thrown");
    }
    done();
  }));
  for (let turn = 0; turn < 200 && expected.some((one) => !refused.has(one)); turn += 1) {
    await new Promise((done) => setTimeout(done, 50));
  }
  return [[...refused].sort(), window.owned ?? null, getComputedStyle(document.body).color];
}
"""
REFUSED = {
    "base-uri",
    "connect-src",
    "eval: thrown",
    "font-src",
    "form-action",
    "frame-src",
    "img-src",
    "p: thrown",
    "require-trusted-types-for",
    "script: thrown",
    "style-src-attr",
    "style-src-elem",
}


async def test_a_script_gets_nothing_in_or_out(console: Console) -> None:
    # Not by a visit, which fails for what the browser says of each refusal.
    context = await console.new_context(base_url=console.origin)
    try:
        page = await context.new_page()
        await page.goto("/console/sign-in")
        await page.locator("main h1").wait_for()
        refused, owned, color = await page.evaluate(ATTEMPTS, [*REFUSED])
        assert REFUSED - set(refused) == set()
        assert owned is None
        assert color != "rgb(255, 0, 0)"
        assert page.url == f"{console.origin}/console/sign-in"
    finally:
        await context.close()


@pytest.mark.soak
async def test_the_documentation_works_under_its_policy(console: Console) -> None:
    async with console.visitor() as visit:
        await visit.page.goto("/docs")
        await visit.page.locator(".opblock-tag").first.wait_for()


async def test_every_request_is_of_the_public_api(visit: Visit) -> None:
    """What the watch of every test relies on."""
    page = await visit.open("/databases")
    visit.watch.expect(404)
    await page.evaluate("() => fetch('/api/v1/console_only')")
    assert [fault for fault in visit.watch.faults if "not of the public API" in fault]
    visit.watch.faults.clear()
