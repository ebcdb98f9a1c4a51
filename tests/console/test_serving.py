"""The console's files, as the API sends them. No database is needed for it."""

import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from app.console.assets import load_files
from app.console.vendoring.recipe import MODULES
from app.http.app import assemble

VENDOR = Path("app/console/files/vendor")
POLICY = {
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "font-src 'none'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
}
FIRST_VISIT_BYTES = 60 * 1024
"""What a first visit may load, compressed, before the editor."""


def client(*, with_console: bool) -> httpx.AsyncClient:
    app = assemble(with_metrics=False, with_console=with_console).litestar
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # Litestar types its scopes more narrowly
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest_asyncio.fixture(scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client(with_console=True) as made:
        yield made


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/databases/new", "/console/no/such/page"])
async def test_every_address_answers_the_page(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    again = await http.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_head_answers_what_get_does_without_content(http: httpx.AsyncClient) -> None:
    for path in ("/console", "/console/databases", f"/console/{load_files().version}/main.js"):
        for headers in ({"Accept-Encoding": "gzip"}, {"Accept-Encoding": ""}):
            whole, head = await http.get(path, headers=headers), await http.head(path, headers=headers)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers == whole.headers
            again = await http.head(path, headers={**headers, "If-None-Match": whole.headers["etag"]})
            assert again.status_code == 304
    assert (await http.head("/console/0/main.js")).status_code == 404


@pytest.mark.parametrize(
    ("site", "cookie", "visitor"),
    [
        ("none", "", True),
        ("same-origin", "other=1", True),
        ("same-origin", "headwater_session=x", False),
        ("none", "__Host-headwater_session=x", False),
        # A link on another site leads here without the cookie.
        ("cross-site", "", False),
        ("", "", False),
    ],
)
async def test_who_is_surely_not_signed_in(http: httpx.AsyncClient, site: str, cookie: str, visitor: bool) -> None:
    answer = await http.get("/console", headers={"Sec-Fetch-Site": site, "Cookie": cookie})
    assert ("data-visitor" in answer.text) is visitor


async def test_what_the_page_names_is_kept_for_ever(http: httpx.AsyncClient) -> None:
    page = (await http.get("/console")).text
    named = re.findall(rf'(?:href|src)="(/console/{load_files().version}/[^"]+)"', page)
    assert len(named) > 10
    for path in named:
        answer = await http.get(path)
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("path", ["VERSION/none.js", "0000000000000000/main.js", "VERSION/..%2froutes.py"])
async def test_a_file_of_another_version_is_not_found(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get("/console/" + path.replace("VERSION", load_files().version))
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/console", "/console/VERSION/main.js"])
async def test_security_headers(http: httpx.AsyncClient, path: str) -> None:
    headers = (await http.get(path.replace("VERSION", load_files().version))).headers
    assert set(headers["content-security-policy"].split("; ")) == POLICY
    check_page_headers(headers)


async def test_security_headers_of_the_documentation(http: httpx.AsyncClient) -> None:
    """It is of the same origin: what runs there, runs as who is signed in."""
    headers = (await http.get("/docs")).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    check_page_headers(headers)
    for path in ("/docs/page.js", "/docs/swagger-ui-bundle.js"):
        assert (await http.get(path)).headers["x-content-type-options"] == "nosniff"


def check_page_headers(headers: httpx.Headers) -> None:
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "//evil.example/console",
        "/console//evil.example/",
        "/console/%2f%2fevil.example",
        "/console/..//evil.example",
        r"/console/\evil.example",
        "/console/sign-in?next=https://evil.example/&return_to=//evil.example/&redirect_uri=https://evil.example/",
    ],
)
async def test_no_address_leads_away(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.request("GET", httpx.URL(scheme="http", host="test", raw_path=path.encode()))
    assert answer.status_code in (200, 404)
    assert not {"location", "refresh"} & set(answer.headers)
    assert "evil.example" not in answer.text


def test_a_compressed_file_is_the_same() -> None:
    for file in load_files().by_path.values():
        assert gzip.decompress(file.compressed) == file.content


async def test_compression_is_asked_for(http: httpx.AsyncClient) -> None:
    plain = await http.get("/console", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert (await http.get("/console")).headers["content-encoding"] == "gzip"
    assert (await http.get("/console")).text == plain.text


async def test_the_console_can_be_left_out() -> None:
    async with client(with_console=False) as http:
        assert (await http.get("/console")).status_code == 404
        assert (await http.get("/docs")).status_code == 200


async def test_a_first_visit_loads_little(http: httpx.AsyncClient) -> None:
    files = load_files()
    page = (await http.get("/console")).text
    named = set(re.findall(rf'/console/{files.version}/([^"]+)"', page))
    assert "main.js" in named
    assert "vendor/signals-core.js" in named
    assert {"components/table.js", "pages/databases.js"} <= named
    assert not named & {"vendor/uplot.js", "vendor/codemirror.js"}
    total = sum(len(files.by_path[name].compressed) for name in named) + len(files.index.compressed)
    assert total <= FIRST_VISIT_BYTES


def test_vendored_files_are_what_was_vendored() -> None:
    described = json.loads((VENDOR / "vendored.json").read_text())
    locked = json.loads(Path("app/console/vendoring/package-lock.json").read_text())["packages"]
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    assert there - {"vendored.json"} == set(described)
    assert {module.name for module in MODULES} <= set(described)
    for name, origin in described.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == origin["sha256"], name
        if "bundled" in origin:
            for package, version in origin["bundled"].items():
                assert locked[f"node_modules/{package}"]["version"] == version
        elif package := locked.get(f"node_modules/{origin['package']}"):
            assert (origin["version"], origin["package_integrity"]) == (package["version"], package["integrity"])


def test_pages_have_no_style_or_script_inside() -> None:
    for name, file in load_files().by_path.items():
        if name.endswith(".js") and not name.startswith("vendor/"):
            assert not re.search(rb"""\bstyle=|innerHTML|\bhttps?://""", file.content), name


def test_what_takes_no_key_is_marked() -> None:
    """In what a person does: the pages repeat everything else whose answer was lost."""
    operations = json.loads(Path("docs/openapi.json").read_text())["paths"]
    source = "".join(path.read_text() for path in Path("app/console/files/pages").rglob("*.js"))
    seen = []
    for path, methods in operations.items():
        names = [one.get("name", "") for one in methods.get("post", {}).get("parameters", [])]
        if "post" not in methods or "Idempotency-Key" in names:
            continue
        asked = re.escape(path.removeprefix("/api/v1"))
        for call in re.findall(rf'method: "POST",\s+path: "{asked}".*?\}}(?=;|\}}\n)', source, re.DOTALL):
            seen.append(path)
            assert "keyless: true" in call, call
    assert len(seen) == 4, seen
