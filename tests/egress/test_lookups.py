"""Name servers that hang, asked by resolvers that block their threads: one party's names never hold up another's."""

import asyncio
import socket
from typing import Any

import pytest

from app.core.settings import Settings
from app.webhooks.egress.lookups import Lookups, resolve_by_system
from app.webhooks.egress.sender import Sender
from tests.egress.conftest import NAME
from tests.support.name_server import NameServer
from tests.support.receiver import Receiver
from tests.support.waiting import LIMIT_SECONDS, until

MANY = 300
"""More than there are threads."""
_system = socket.getaddrinfo


@pytest.fixture
def asked_by_the_system(names: NameServer, monkeypatch: pytest.MonkeyPatch) -> NameServer:
    """The name server is that of this machine."""

    def getaddrinfo(host: str, *arguments: Any, **named: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in names.block(host)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


async def test_other_teams_deliveries_go_on(asked_by_the_system: NameServer, outside: Receiver) -> None:
    names = asked_by_the_system
    names.answers, names.patience = {NAME: [["127.0.0.1"]]}, LIMIT_SECONDS
    dead = [f"dead-{number}.example.com" for number in range(MANY)]
    names.silent.update(dead)
    sender = Sender(
        Settings(
            webhook_allow_cidrs=("127.0.0.0/8",),
            webhook_ca_file=outside.ca_file,
            webhook_timeout_seconds=LIMIT_SECONDS,
        )
    )
    try:
        hanging = [asyncio.create_task(sender.send(f"https://{host}/", {}, b"{}", party="team-1")) for host in dead]
        # As many as one party may have under way.
        await until(lambda: len(set(names.unanswered)) == 8)
        fine = await sender.send(outside.url(host=NAME), {}, b"{}", party="team-2")
        assert fine.delivered, fine.error
        assert not any(one.done() for one in hanging)
        # The same team's own addresses need no lookup.
        assert (await sender.send(outside.url(), {}, b"{}", party="team-1")).delivered
        # Nobody listens there. A resolver that has no answer asks again.
        names.answers.update({host: [["127.0.0.9"]] for host in dead})
        names.silent.clear()
        for lost in await asyncio.gather(*hanging):
            assert lost.error is not None
            assert lost.error.startswith("No connection")
    finally:
        await sender.close()


async def test_places_come_back(asked_by_the_system: NameServer) -> None:
    names = asked_by_the_system
    names.answers, names.patience = {NAME: [["192.0.2.1"]]}, 1
    dead = [f"dead-{number}.example.com" for number in range(16)]
    names.silent.update(dead)
    lookups = Lookups(resolve_by_system)
    given_up = [asyncio.create_task(lookups.addresses(host, "team-1")) for host in dead]
    # More where a second passes between two looks.
    await until(lambda: len(set(names.unanswered)) >= 8)
    for one in given_up[:8]:
        one.cancel()
    # Eight take a second, eight more the next; then there is room.
    assert await asyncio.wait_for(lookups.addresses(NAME, "team-1"), LIMIT_SECONDS) == ["192.0.2.1"]
    ended = await asyncio.gather(*given_up, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError | OSError) for one in ended)
    assert len(lookups) == 0


async def test_what_nobody_waits_for_is_not_begun(names: NameServer) -> None:
    dead = [f"dead-{number}.example.com" for number in range(40)]
    names.silent.update(dead)
    names.answers, names.patience = {NAME: [["192.0.2.1"]]}, 3
    begun: list[str] = []

    async def resolve(host: str) -> list[str]:
        begun.append(host)
        return await names.resolve(host)

    lookups = Lookups(resolve)
    given_up = [asyncio.create_task(lookups.addresses(host, "team-1")) for host in dead]
    await until(lambda: len(begun) == 8)
    for one in given_up:
        one.cancel()
    await asyncio.gather(*given_up, return_exceptions=True)
    assert await asyncio.wait_for(lookups.addresses(NAME, "team-1"), LIMIT_SECONDS) == ["192.0.2.1"]
    assert begun == [*dead[:8], NAME]


async def test_a_name_is_looked_up_once_at_a_time(names: NameServer) -> None:
    names.answers = {NAME: [["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"]]}
    lookups = Lookups(names.resolve)
    first = await asyncio.gather(*(lookups.addresses(NAME, "team-1") for _ in range(20)))
    assert first == [["192.0.2.1"]] * 20
    # Nothing is kept, and another party asks for itself.
    both = await asyncio.gather(lookups.addresses(NAME, "team-1"), lookups.addresses(NAME, "team-2"))
    assert len(names.asked) == 3
    assert len(both) == 2
