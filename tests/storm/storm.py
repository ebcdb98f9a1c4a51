"""A storm: many equal requests at once, against API processes that are killed and started again all the while."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.local.ports import LOOPBACK
from app.local.processes import ChildProcess
from app.local.services import start
from tests.support.client import Caller
from tests.support.forks import ForkedApi
from tests.support.ports import free_port
from tests.support.service import RunningService
from tests.support.waiting import until

LEASE_SECONDS = 5
_PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Request:
    """One client's request. Those of a key are equal, but for the few with `other` as their body."""

    key: str
    body: dict[str, str]
    wait: bool


@dataclass(frozen=True)
class Answered:
    request: Request
    status: int
    body: dict[str, Any] = field(repr=False)

    @property
    def code(self) -> str | None:
        """An error's."""
        code: str | None = self.body.get("error", {}).get("code")
        return code

    @property
    def is_replay(self) -> bool:
        return self.body.get("idempotency_replay") is True


class Processes:
    """API processes that come back on the ports that they had."""

    def __init__(self, service: RunningService, count: int) -> None:
        ports = [free_port() for _ in range(count)]
        self.urls = [f"http://{LOOPBACK}:{port}" for port in ports]
        self.kills = 0
        self._apis = [self._api(service, port) for port in ports]
        self._children: dict[int, ChildProcess] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Processes"]:
        try:
            for number in range(len(self._apis)):
                await self._start(number)
            yield self
        finally:
            await asyncio.gather(*(child.kill() for child in self._children.values()))

    @asynccontextmanager
    async def killed_at_random(self, dice: random.Random) -> AsyncIterator[None]:
        """For the block; at its end all of them run."""
        over = asyncio.Event()
        killing = asyncio.create_task(self._kill_again_and_again(dice, over))
        try:
            yield
        finally:
            # Not cancelled: that would leave what was just killed without another start.
            over.set()
            await killing

    async def _kill_again_and_again(self, dice: random.Random, over: asyncio.Event) -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), dice.uniform(0.1, 0.8))
                return
            number = dice.randrange(len(self._apis))
            await self._children[number].kill()
            self.kills += 1
            await self._start(number)

    async def _start(self, number: int) -> None:
        self._children[number] = await start(self._apis[number])

    @staticmethod
    def _api(service: RunningService, port: int) -> ForkedApi:
        environ = service.environ(API_PORT=str(port), IDEMPOTENCY_LEASE_SECONDS=str(LEASE_SECONDS))
        log = service.folder / f"storm-{port}.log"
        return ForkedApi("api", port=port, log=log, environ=lambda: environ, host=LOOPBACK)


def requests(dice: random.Random, *, keys: int, each: int) -> list[list[Request]]:
    """For every key its requests, in the order in which they are sent: one in ten with another body."""
    made = []
    for number in range(keys):
        key, wait = f"key-{number}-{dice.getrandbits(64):x}", dice.random() < 0.4
        bodies = [{"name": f"db-{number}-{'b' if dice.random() < 0.1 else 'a'}"} for _ in range(each)]
        made.append([Request(key, body, wait) for body in bodies])
    return made


async def rage(
    caller: Caller, processes: Processes, wanted: list[list[Request]], dice: random.Random, *, at_once: int
) -> list[Answered]:
    """Sends everything, `at_once` keys at a time, all requests of a key together. Whoever gets no answer, or one that
    says that the service is away, asks again."""
    turn = asyncio.Semaphore(at_once)
    async with AsyncExitStack() as stack:
        limits = httpx.Limits(max_connections=None)
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, limits=limits))
            for url in processes.urls
        ]
        places = [[dice.randrange(len(clients)) for _ in group] for group in wanted]

        async def send(group: list[Request], at: list[int]) -> list[Answered]:
            async with turn:
                return await asyncio.gather(
                    *(_until_answered(caller, clients, place, one) for place, one in zip(at, group, strict=True))
                )

        answered = await asyncio.gather(*(send(group, at) for group, at in zip(wanted, places, strict=True)))
    return [one for group in answered for one in group]


async def settled(caller: Caller, processes: Processes, request: Request) -> Answered:
    """The answer to one more request with the key, once the key is in flight no more."""
    async with httpx.AsyncClient(base_url=processes.urls[0], timeout=60) as client:

        async def look() -> Answered | None:
            answer = await _until_answered(caller, [client], 0, request)
            return None if answer.code == "idempotency_key_in_progress" else answer

        answer = await until(look, timeout=LEASE_SECONDS + 30)
    assert answer is not None
    return answer


async def _until_answered(caller: Caller, clients: list[httpx.AsyncClient], place: int, request: Request) -> Answered:
    params = {"wait": "true", "timeout": "30"} if request.wait else {}
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            at = Caller(clients[place % len(clients)], caller.api_key, caller.user_id, caller.team_id, caller.key_id)
            with contextlib.suppress(httpx.TransportError):
                answer = await at.post("/databases", request.body, key=request.key, params=params)
                if answer.status_code != 503:
                    return Answered(request, answer.status_code, answer.json())
            place += 1
            await asyncio.sleep(0.1)
