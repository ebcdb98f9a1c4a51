"""Rotations under load: clients that come back with the newest password that they were given lose nothing."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.credentials.support import rotate, run
from tests.e2e.hosts import mysql, postgres
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.waiting import until

_CLIENTS = 4
_DATABASES = 8
_STATEMENTS = 5
"""In one session of a client."""


@dataclass
class Clients:
    """`newest` is the newest connection string; `used` what each client has taken to connect with."""

    newest: str
    used: dict[int, str] = field(default_factory=dict)
    sessions: int = 0
    statements: int = 0
    refused: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stopped: bool = False

    async def work(self, number: int) -> None:
        """One client, until it is stopped."""
        while not self.stopped:
            # Before it connects: whoever ends what was used before has to wait for this one.
            string = self.used[number] = self.newest
            try:
                session = postgres(string) if string.startswith("postgresql") else mysql(string)
                connection = await session.__aenter__()
            except Exception as fault:
                self.refused.append(repr(fault))
                await asyncio.sleep(0.01)
                continue
            self.sessions += 1
            try:
                await self._use(connection)
            except Exception as fault:
                self.failed.append(repr(fault))
            await session.__aexit__(None, None, None)

    async def _use(self, connection: Any) -> None:
        for _ in range(_STATEMENTS):
            await connection.execute("INSERT INTO visits VALUES (1)")
            self.statements += 1

    def has_left(self, string: str) -> bool:
        """Whether nobody uses it any more."""
        return string not in self.used.values()


async def rotate_under_load(caller: Caller, engine: str, times: int) -> Clients:
    made = await caller.created(db_type=engine, connection_hard_limit=40)
    await run(made["connection_string"], "CREATE TABLE visits (n integer)")
    clients = Clients(made["connection_string"])
    working = [asyncio.create_task(clients.work(number)) for number in range(_CLIENTS)]
    try:
        for _ in range(times):
            previous = clients.newest
            rotated = await rotate(caller, made)
            clients.newest = rotated["connection_string"]
            await until(partial(clients.has_left, previous))
            data_of(await caller.post(f"/credential_rotations/{rotated['uuid']}/completions", {}))
    finally:
        clients.stopped = True
        await asyncio.gather(*working)
    assert await run(clients.newest, "SELECT count(*) FROM visits") >= clients.statements
    assert clients.sessions >= times
    print(f"\n{engine}: {times} rotations, {clients.sessions} sessions, {clients.statements} statements")  # noqa: T201
    return clients


async def test_a_few(caller: Caller, engine: str) -> None:
    clients = await rotate_under_load(caller, engine, 6)
    assert (clients.refused, clients.failed) == ([], [])


@pytest.mark.soak
async def test_a_thousand(caller: Caller, engine: str) -> None:
    """Of several databases at once."""
    ran = await asyncio.gather(*(rotate_under_load(caller, engine, 1000 // _DATABASES) for _ in range(_DATABASES)))
    assert [(clients.refused, clients.failed) for clients in ran] == [([], [])] * _DATABASES
