"""The compose file's proxy in front of a real API: TLS, cookies, clients' addresses, streams, bodies, its answers."""

import asyncio
import json
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.auth.keys import KeyControls
from app.core.secrets import new_key_setting
from app.local.ports import LOOPBACK
from app.local.services import server_environ, start
from tests.deployment import compose
from tests.deployment.proxy import CADDY, CADDYFILE, Proxy, new_proxy, running
from tests.servers import RunningServer
from tests.support.answers import body_of, error_of
from tests.support.client import UNHURRIED, Caller, new_caller
from tests.support.event_stream import EventStream
from tests.support.forks import ForkedApi
from tests.support.in_process import LoneApi
from tests.support.people import cookie_of, follow, link_for
from tests.support.ports import free_port
from tests.support.store import copy_of, store
from tests.support.waiting import LIMIT_SECONDS, until

STREAMS = 2
"""Event streams of one key."""
NEAR, FAR = "127.0.0.2", "127.0.0.3"


@dataclass(frozen=True)
class Front:
    """A proxy, and the API behind it."""

    proxy: Proxy
    http: httpx.AsyncClient
    control_dsn: str
    api_port: int

    async def caller(self, http: httpx.AsyncClient | None = None, **controls: Any) -> Caller:
        given = KeyControls(**controls) if controls else UNHURRIED
        return await new_caller(http or self.http, self.control_dsn, controls=given)


@pytest_asyncio.fixture(scope="module")
async def front(
    tmp_path_factory: pytest.TempPathFactory, control_server: RunningServer, migrated_dsn: str
) -> AsyncIterator[Front]:
    control_dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    async with _front(tmp_path_factory.mktemp("proxy"), control_dsn) as made:
        yield made


@asynccontextmanager
async def _front(folder: Path, control_dsn: str, **settings: str) -> AsyncIterator[Front]:
    """`settings` are further variables of the API's environment."""
    proxy, api_port = new_proxy(folder), free_port()
    public = {"PUBLIC_HOST": proxy.host, "PUBLIC_HTTPS_PORT": str(proxy.port), "PROXY_NETWORK": f"{LOOPBACK}/32"}
    required = {name: "abc123" for name, rest in compose.variables().items() if rest.startswith("?")}
    environ = {
        **server_environ(),
        **compose.environment(compose.services()["api"], required | public),
        "HEADWATER_CONTROL_DSN": control_dsn,
        "HEADWATER_SECRET_KEYS": new_key_setting(),
        "HEADWATER_TEMPORAL_ADDRESS": f"{LOOPBACK}:{free_port()}",
        "HEADWATER_METRICS_PORT": "",
        "HEADWATER_METRICS_HOST": "",
        "HEADWATER_API_PORT": str(api_port),
        # Soon, for the tests.
        "HEADWATER_EVENT_STREAM_COMMENT_SECONDS": "0.2",
        "HEADWATER_EVENT_STREAMS_PER_KEY": str(STREAMS),
        **settings,
    }
    api = await start(ForkedApi("api", port=api_port, log=folder / "api.log", environ=lambda: environ, host=LOOPBACK))
    try:
        async with running(proxy, api_port), proxy.client() as http:
            yield Front(proxy, http, control_dsn, api_port)
    finally:
        await api.stop(timeout=2)


async def test_plain_http_leads_to_tls_and_nowhere_else(front: Front) -> None:
    headers = {"Host": f"{front.proxy.host}:{front.proxy.http_port}"}
    url = f"http://{LOOPBACK}:{front.proxy.http_port}"
    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_SECONDS) as plain:
        for method, path in (("GET", "/console/sign-in?next=1"), ("POST", "/api/v1/sign_ins/links")):
            answer = await plain.request(method, path, headers=headers)
            assert answer.status_code == 308
            assert answer.headers["Location"] == f"{front.proxy.origin}{path}"
            assert "Set-Cookie" not in answer.headers


def test_http_2_and_clients_that_name_no_host(front: Front) -> None:
    context = front.proxy.tls("h2", "http/1.1")
    with (
        socket.create_connection((LOOPBACK, front.proxy.port)) as plain,
        context.wrap_socket(plain, server_hostname=front.proxy.host) as encrypted,
    ):
        assert encrypted.selected_alpn_protocol() == "h2"
        assert encrypted.version() == "TLSv1.3"
    context.check_hostname = False
    with socket.create_connection((LOOPBACK, front.proxy.port)) as plain, context.wrap_socket(plain) as encrypted:
        names = encrypted.getpeercert() or {}
        assert names["subjectAltName"] == (("DNS", front.proxy.host),)


async def test_signing_in(front: Front) -> None:
    caller = await front.caller()
    token = await link_for(front.control_dsn, caller.user_id)
    for origin in ("https://evil.example", front.proxy.origin.replace("https", "http"), f"https://{front.proxy.host}"):
        error_of(await follow(front.http, token, headers={"Origin": origin}), 403, "cross_origin_refused")
    # What a client says of the way to the proxy counts for nothing.
    answer = await follow(front.http, token, headers={"X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example"})
    body_of(answer, 201)
    name, session = cookie_of(answer)
    assert name == "__Host-headwater_session"
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(answer.headers["Set-Cookie"].split("; "))
    body_of(await front.http.get("/api/v1/databases", headers={"Cookie": f"{name}={session}"}))
    page = await front.http.get("/console/")
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"


async def test_clients_addresses(front: Front) -> None:
    caller = await front.caller(requests_per_minute=100_000, allowed_ips=(NEAR,))
    header = {"Authorization": f"Bearer {caller.api_key}"}
    async with front.proxy.client(NEAR) as near, front.proxy.client(FAR) as far:
        body_of(await near.get("/api/v1/me", headers=header | {"X-Forwarded-For": FAR}))
        error_of(await far.get("/api/v1/me", headers=header), 403, "ip_not_allowed")
        for forged in ("X-Forwarded-For", "X-Real-IP", "X-Client-IP", "True-Client-IP"):
            error_of(await far.get("/api/v1/me", headers=header | {forged: NEAR}), 403, "ip_not_allowed")
        error_of(await far.get("/api/v1/me", headers=header | {"Forwarded": f"for={NEAR}"}), 403, "ip_not_allowed")


async def test_a_proxy_in_front_of_the_proxy(front: Front, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Only its word counts, and only on the address that it was reached from itself."""
    inner = new_proxy(tmp_path_factory.mktemp("inner"))
    caller = await front.caller(requests_per_minute=100_000, allowed_ips=("203.0.113.7",))
    header = {"Authorization": f"Bearer {caller.api_key}"}
    async with (
        running(inner, front.api_port, TRUSTED_PROXIES=f"{NEAR}/32 198.51.100.0/24"),
        inner.client(NEAR) as outer,
        inner.client(FAR) as other,
    ):
        for told in ("203.0.113.7", "192.0.2.1, 203.0.113.7", "203.0.113.7, 198.51.100.3"):
            body_of(await outer.get("/api/v1/me", headers=header | {"X-Forwarded-For": told}))
        for told in ("203.0.113.7, 192.0.2.1", "192.0.2.1"):
            answer = await outer.get("/api/v1/me", headers=header | {"X-Forwarded-For": told})
            error_of(answer, 403, "ip_not_allowed")
        answer = await other.get("/api/v1/me", headers=header | {"X-Forwarded-For": "203.0.113.7"})
        error_of(answer, 403, "ip_not_allowed")


async def test_events_pass_while_the_stream_is_open_and_its_end_is_known(front: Front) -> None:
    caller = await front.caller()
    async with store(front.control_dsn):
        await LoneApi(front.http, front.control_dsn).add_host()
    made = (await caller.create()).json()["data"]
    operation = (await caller.get("/operations")).json()["data"][0]["uuid"]
    assert made["status"] == "provisioning"
    # More of them than a key may have open: each is over for the API when its client has gone.
    for _ in range(2 * STREAMS):

        async def followed() -> bool:
            headers = {"Authorization": f"Bearer {caller.api_key}"}
            async with front.http.stream("GET", f"/api/v1/operations/{operation}/events", headers=headers) as answer:
                if answer.status_code == 429:
                    return False
                stream = EventStream(answer)
                assert await stream.next() is not None
                await stream.comment()
            return True

        await until(followed)


async def test_bodies_are_bounded_behind_it(front: Front) -> None:
    caller = await front.caller()
    error_of(await caller.post("/databases", {"name": "x" * 2**20}), 413, "payload_too_large")


async def test_a_body_that_does_not_come_behind_it(tmp_path: Path, control_dsn: str) -> None:
    """At an API of its own: any other body may take that long on a machine with other work."""
    async with _front(tmp_path, control_dsn, HEADWATER_REQUEST_BODY_TIMEOUT_SECONDS="0.5") as front:
        caller = await front.caller()
        reader, writer = await asyncio.open_connection(
            LOOPBACK, front.proxy.port, ssl=front.proxy.tls(), server_hostname=front.proxy.host
        )
        host = f"{front.proxy.host}:{front.proxy.port}"
        head = f"POST /api/v1/databases HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99\r\n"
        writer.write(f"{head}Authorization: Bearer {caller.api_key}\r\nIdempotency-Key: slow\r\n\r\n{{".encode())
        async with asyncio.timeout(LIMIT_SECONDS):
            assert (await reader.readline()).split()[1] == b"408"
        writer.close()


async def test_another_name_gets_nothing(front: Front) -> None:
    for port in (front.proxy.port, front.proxy.temporal_ui_port):
        answer = await front.http.get("/health/live", headers={"Host": f"evil.example:{port}"})
        assert (answer.status_code, answer.content) == (421, b"")


async def test_temporals_pages(front: Front) -> None:
    """The upstream is the API here as well."""
    async with front.proxy.client(base_url=f"https://localhost:{front.proxy.temporal_ui_port}") as http:
        assert (await http.get("/health/live")).status_code == 200
        answer = await http.get("/health/live", headers={"Host": f"evil.example:{front.proxy.temporal_ui_port}"})
        assert answer.status_code == 421


async def test_what_the_api_learns_of_a_client(tmp_path_factory: pytest.TempPathFactory) -> None:
    told: asyncio.Queue[httpx.Headers] = asyncio.Queue()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[1:-1]
        fields = (line.partition(": ") for line in lines)
        await told.put(httpx.Headers([(name, value) for name, _, value in fields]))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(upstream, LOOPBACK, 0)
    proxy = new_proxy(tmp_path_factory.mktemp("told"))
    said = {"X-Forwarded-For": FAR, "X-Forwarded-Proto": "http", "Forwarded": f"for={FAR}"}
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}
    async with server, running(proxy, server.sockets[0].getsockname()[1]), proxy.client(NEAR) as http:
        await http.get("/", headers=said | trace)
        headers = await told.get()
    assert headers.get_list("X-Forwarded-For") == [NEAR]
    assert headers.get_list("X-Forwarded-Proto") == ["https"]
    assert headers["Host"] == f"{proxy.host}:{proxy.port}"
    assert not {"forwarded", "traceparent", "tracestate"} & set(headers)


async def test_while_the_api_is_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    proxy = new_proxy(tmp_path_factory.mktemp("alone"))
    async with running(proxy, free_port()), proxy.client() as http:
        answer = await http.post("/api/v1/databases")
        error_of(answer, 503, "service_unavailable")
        assert answer.headers["Retry-After"] == "5"


@pytest.mark.parametrize(
    ("given", "issuers"),
    [
        ({"PUBLIC_HOST": "headwater.example.com"}, {}),
        ({"PUBLIC_HOST": "headwater.example.com", "PUBLIC_CERTIFICATE": "internal"}, {"headwater.example.com"}),
        ({}, {}),
    ],
    ids=["acme", "own-authority", "localhost"],
)
def test_who_signs(given: dict[str, str], issuers: set[str]) -> None:
    """Without a word on it Caddy asks an ACME server for a public name, and its own authority for any other."""
    adapted = _adapted(given)
    policies = adapted["apps"].get("tls", {}).get("automation", {}).get("policies", [])
    internal = [one for one in policies if one.get("issuers") == [{"module": "internal"}]]
    assert {subject for one in internal for subject in one["subjects"]} == set(issuers)
    assert json.dumps(adapted).count('"strict-transport-security"'.title()) == 1
    [server] = [one for one in adapted["apps"]["http"]["servers"].values() if one["listen"] == ["0.0.0.0:443"]]
    assert server["read_header_timeout"] == 10e9
    assert server["idle_timeout"] == 60e9
    assert server["protocols"] == ["h1", "h2"]


def test_the_caddyfile_is_formatted() -> None:
    formatted = subprocess.run([CADDY, "fmt", CADDYFILE], capture_output=True, text=True, check=False)
    assert formatted.stdout == CADDYFILE.read_text()


def _adapted(given: dict[str, str]) -> dict[str, Any]:
    environ = server_environ() | compose.environment(compose.services()["proxy"], given)
    argv = [CADDY, "adapt", "--config", CADDYFILE, "--adapter", "caddyfile"]
    run = subprocess.run(list(map(str, argv)), env=environ, capture_output=True, text=True, check=True)
    adapted: dict[str, Any] = json.loads(run.stdout)
    return adapted
