"""Requests that are let in together: those that arrive while a statement is under way share the next one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Generic, Protocol, TypeVar

import asyncpg
import msgspec
from asyncpg import Connection

from app.auth.principal import Principal
from app.store.connections import is_lost

WINDOW_SECONDS = 60
"""The length of the window in which requests are counted."""
STATEMENTS = 2
"""How many statements run at the same time. While one is under way, the next one's requests collect. There is a second
one, so that a key whose row another process holds doesn't make all others wait."""
_MOST_REQUESTS = 256
"""How many requests one statement admits at most."""


class Allowance(msgspec.Struct, frozen=True):
    """What is left to a key, or to a person, in the present window."""

    limit: int
    remaining: int
    resets_in: int
    """Seconds."""


class Admitted(msgspec.Struct, frozen=True):
    principal: Principal
    allowance: Allowance


class Verdict(Protocol):
    """What the statement says of one secret."""

    @property
    def postponed(self) -> bool:
        """Whether requests with another secret of the same owner are counted now, and these later."""


Said = TypeVar("Said", bound=Verdict)
Waiter = tuple[str, "asyncio.Future[Admitted]"]
Batch = dict[bytes, list[Waiter]]
"""Waiting requests, by the hash of the secret that they came with."""
Asked = Mapping[bytes, Sequence[str]]
"""The requests' addresses, by the same hash."""


class Batches(Generic[Said]):
    """The batches of one process. `ask` runs the statement for one batch; `settle` gives each request of one secret its
    answer, in the order in which they were counted."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        ask: Callable[[Connection, Asked], Awaitable[dict[bytes, Said]]],
        settle: Callable[[list[Waiter], Said | None], None],
    ) -> None:
        self._pool = pool
        self._ask = ask
        self._settle = settle
        self._waiting: Batch = {}
        self._postponed: Batch = {}
        """Requests whose statement counted those with the same owner's other secret. The next statement is theirs
        alone, or they would meet the other secret again and again."""
        self._asking: set[bytes] = set()
        """Hashes that a statement under way is about. Each is in one statement at a time."""
        self._tasks: set[asyncio.Task[None]] = set()
        """The tasks that still take waiting requests."""
        self._closing = False
        self._idle: list[Connection] = []
        """Connections taken from the pool for good: taking one and giving it back costs a quarter of what asking
        does."""

    async def admit(self, secret: bytes, address: str) -> Admitted:
        """What `settle` says of a request with the secret that has this hash."""
        answer: asyncio.Future[Admitted] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(secret, []).append((address, answer))
        if len(self._tasks) < STATEMENTS:
            task = asyncio.create_task(self._serve())
            self._tasks.add(task)
        admitted = await answer
        # Requests that came with the same secret at the same time share the rest.
        return Admitted(msgspec.structs.replace(admitted.principal, address=address), admitted.allowance)

    async def _serve(self) -> None:
        """Decides on waiting requests, batch by batch, until none waits but those whose secret another task is at."""
        while batch := self._take():
            try:
                await self._decide(batch)
            except asyncpg.DataError:
                await self._decide_one_by_one(batch)
            except Exception as fault:
                _refuse(batch, fault)
            finally:
                self._asking -= batch.keys()
        # With no pause since the queue was empty, or a request could come in between and find nobody.
        self._tasks.discard(asyncio.current_task())

    async def _decide(self, batch: Batch) -> None:
        asked = {secret: [address for address, _ in waiters] for secret, waiters in batch.items()}
        async with self._connection() as connection:
            verdicts = await self._ask(connection, asked)
        for secret, waiters in batch.items():
            verdict = verdicts.get(secret)
            if verdict is not None and verdict.postponed:
                self._postponed.setdefault(secret, []).extend(waiters)
            else:
                self._settle(waiters, verdict)

    async def _decide_one_by_one(self, batch: Batch) -> None:
        """Decides anew after a statement that failed for what is stored of one secret: the others' requests don't fail
        with it."""
        for secret, waiters in batch.items():
            try:
                await self._decide({secret: waiters})
            except Exception as fault:
                _refuse({secret: waiters}, fault)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """A connection that nobody else uses during the block. One that failed goes back to the pool, which finds out
        whether it is lost."""
        while self._idle:
            connection = self._idle.pop()
            if not is_lost(connection):
                break
            await self._pool.release(connection)
        else:
            connection = await self._pool.acquire()
        reusable = False
        try:
            yield connection
            reusable = not self._closing
        finally:
            if reusable:
                self._idle.append(connection)
            else:
                with suppress(Exception):
                    await self._pool.release(connection)

    async def close(self) -> None:
        """Gives its connections back, now or when what is under way has ended."""
        self._closing = True
        while self._idle:
            await self._pool.release(self._idle.pop())

    def _take(self) -> Batch:
        batch: Batch = {}
        room = _MOST_REQUESTS
        source, free = self._postponed, [each for each in self._postponed if each not in self._asking]
        if not free:
            source, free = self._waiting, [each for each in self._waiting if each not in self._asking]
        for secret in free:
            waiters = source.pop(secret)
            batch[secret], later = waiters[:room], waiters[room:]
            if later:
                source[secret] = later
            room -= len(batch[secret])
            if not room:
                break
        self._asking |= batch.keys()
        return batch


def _refuse(batch: Batch, fault: Exception) -> None:
    for _, answer in (waiter for waiters in batch.values() for waiter in waiters):
        if not answer.done():
            answer.set_exception(fault)
