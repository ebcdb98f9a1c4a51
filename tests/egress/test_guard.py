"""No byte reaches the inside: not by address, by name, by a name that changes, by redirect or by proxy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.core.settings import Settings
from app.webhooks.egress.guard import AddressRefused, Guard
from app.webhooks.egress.sender import AttemptResult, Sender
from tests.egress.conftest import NAME, Inside
from tests.egress.test_addresses import TRICKS
from tests.support.name_server import NameServer
from tests.support.receiver import Receiver, answer
from tests.support.waiting import LIMIT_SECONDS

# Loopback in every spelling: what would get through if it were not refused.
LITERALS = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "0.0.0.0"),
    *("localhost", "LOCALHOST", "localhost.", "ip6-localhost", "127.0.0.1.", "127.255.255.254"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::1]", "[::ffff:0:7f00:1]", "[::1%lo]", "[fe80::1%25lo]"),
    *("user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1#@example.com", "127.0.0.1\\@example.com"),
]
NAMEABLE = [name for name, address in TRICKS.items() if (":" in address or "." in address) and "%" not in address]
"""Tricks that a name server can answer with."""


@asynccontextmanager
async def sender(**settings: object) -> AsyncIterator[Sender]:
    resolve = settings.pop("resolve", None)
    known = Settings(**{"webhook_timeout_seconds": LIMIT_SECONDS, **settings})  # type: ignore[arg-type]  # the test names them
    made = Sender(known, resolve=resolve) if resolve else Sender(known)  # type: ignore[arg-type]  # as above
    try:
        yield made
    finally:
        await made.close()


async def send(by: Sender, url: str) -> AttemptResult:
    return await by.send(url, {}, b"{}")


@pytest.mark.parametrize("host", LITERALS)
async def test_no_spelling_of_an_inside_address(inside: Inside, host: str) -> None:
    async with sender(webhook_timeout_seconds=3) as by:
        refused = await send(by, f"https://{host}:{inside.port}/")
    assert not refused.delivered
    assert refused.code is None
    assert inside.connections == 0


@pytest.mark.parametrize("trick", NAMEABLE)
async def test_no_name_that_stands_for_one(inside: Inside, names: NameServer, trick: str) -> None:
    address = TRICKS[trick]
    names.answers = {"a.example": [[address]], "b.example": [["1.1.1.1", address]]}
    async with sender(resolve=names.resolve) as by:
        for name in names.answers:
            refused = await send(by, f"https://{name}:{inside.port}/")
            assert refused.error == f"{name} is, or resolves to, an address that is not public."
    assert inside.connections == 0


async def test_a_name_that_changes_its_answer_between_check_and_connection(
    inside: Inside, names: NameServer, outside: Receiver
) -> None:
    """127.0.0.1 plays the public address, 127.0.0.2 the inside; only the first is allowed."""
    names.answers[NAME] = [["127.0.0.1"], ["127.0.0.2"]]
    settings = {"webhook_allow_cidrs": ("127.0.0.1/32",), "webhook_ca_file": outside.ca_file}
    async with sender(resolve=names.resolve, **settings) as by:
        first = await send(by, f"https://{NAME}:{outside.port}/")
        assert (first.delivered, outside.connections) == (True, 1)
        assert names.asked == [NAME]  # judged and dialled by one and the same answer
        second = await send(by, f"https://{NAME}:{inside.port}/")
    assert second.error is not None
    assert "not public" in second.error
    assert names.asked == [NAME, NAME]
    assert inside.connections == 0


async def test_a_name_that_was_public_when_the_endpoint_was_made(inside: Inside, names: NameServer) -> None:
    names.answers[NAME] = [["1.1.1.1"], ["127.0.0.1"]]
    async with sender(resolve=names.resolve) as by:
        assert await by.guard.addresses(NAME) == ["1.1.1.1"]
        assert not (await send(by, f"https://{NAME}:{inside.port}/")).delivered
        with pytest.raises(AddressRefused):
            await by.guard.addresses(NAME)
    assert inside.connections == 0


async def test_a_redirect_is_not_followed(inside: Inside, outside: Receiver) -> None:
    for status in (301, 302, 303, 307, 308):
        outside.replies["/"] = answer(status, Location=f"https://127.0.0.1:{inside.port}/")
        async with sender(webhook_allow_cidrs=("127.0.0.0/8",), webhook_ca_file=outside.ca_file) as by:
            redirected = await send(by, outside.url())
        assert redirected.code == status
        assert not redirected.delivered
    assert inside.connections == 0


async def test_no_proxy_of_the_environment(inside: Inside, outside: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{inside.port}")
    async with sender(webhook_allow_cidrs=("127.0.0.0/8",), webhook_ca_file=outside.ca_file) as by:
        assert (await send(by, outside.url())).delivered
    assert inside.connections == 0


async def test_the_listener_would_notice(inside: Inside, outside: Receiver) -> None:
    """What the other tests rely on: with the guard open, the same listener is reached."""
    async with sender(webhook_allow_cidrs=("127.0.0.0/8",)) as by:
        lost = await send(by, f"https://127.0.0.1:{inside.port}/")
    assert not lost.delivered
    assert inside.connections == 1


async def test_the_name_is_what_the_certificate_must_be_for(names: NameServer, outside: Receiver) -> None:
    names.answers = {NAME: [["127.0.0.1"]], "other.example.com": [["127.0.0.1"]]}
    settings = {"webhook_allow_cidrs": ("127.0.0.0/8",), "resolve": names.resolve}
    async with sender(webhook_ca_file=outside.ca_file, **settings) as by:
        assert (await send(by, f"https://{NAME}:{outside.port}/")).delivered
        assert outside.received[0].headers["host"] == f"{NAME}:{outside.port}"
        other = await send(by, f"https://other.example.com:{outside.port}/")
    async with sender(**settings) as without_authority:
        unknown = await send(without_authority, f"https://{NAME}:{outside.port}/")
    assert other.error is not None
    assert "Hostname mismatch" in other.error
    assert unknown.error is not None
    assert "certificate" in unknown.error
    assert len(outside.received) == 1


async def test_a_name_server_that_hangs_costs_the_time_of_a_connection(names: NameServer) -> None:
    names.silent.add(NAME)
    async with sender(resolve=names.resolve, webhook_timeout_seconds=1) as by:
        hung = await send(by, f"https://{NAME}/")
    assert hung.error in ("No connection within 1 s.", "No answer within 1 s.")
    assert hung.duration > 0.9


async def test_a_dead_address_leaves_time_for_the_next(names: NameServer, outside: Receiver) -> None:
    names.answers[NAME] = [["127.0.0.2", "127.0.0.1"]]
    async with sender(
        resolve=names.resolve, webhook_allow_cidrs=("127.0.0.0/8",), webhook_ca_file=outside.ca_file
    ) as by:
        assert (await send(by, f"https://{NAME}:{outside.port}/")).delivered


async def test_the_address_that_was_judged_is_the_one_that_is_dialled(names: NameServer, outside: Receiver) -> None:
    """The receiver listens on 127.0.0.1 and on no other address of the machine."""
    names.answers[NAME] = [["127.0.0.3"]]
    async with sender(
        resolve=names.resolve, webhook_allow_cidrs=("127.0.0.0/8",), webhook_ca_file=outside.ca_file
    ) as by:
        assert not (await send(by, f"https://{NAME}:{outside.port}/")).delivered
    assert outside.connections == 0


async def test_a_host_without_an_address() -> None:
    async def nothing(_: str) -> list[str]:
        return []

    guard = Guard(Sender(Settings()).guard._rule, nothing)
    with pytest.raises(OSError, match="no address"):
        await guard.addresses("nowhere.example")
    await asyncio.sleep(0)
