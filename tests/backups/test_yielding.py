"""A backup gives way to those who work on its host, and ends all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from app.backups.breaking_off import time_limit, within
from app.backups.taking import BackupTaking
from app.backups.yielding import GivingWay, looking
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.restores import TRANSFER_LIMIT
from app.databases.passwords import tenant_of
from app.engines.dumping import DumpRefused
from app.engines.pacing import DumpStep
from app.hosts.changes import MOST_STORAGE_GB
from app.hosts.slots import HostSlots
from app.store.session import fetch
from tests.backups.support import TERMS, status_of
from tests.backups.test_deaths import Scene
from tests.backups.test_deaths import scene as scene
from tests.support.waiting import until
from workflows import policies


class Time:
    """Passes when somebody sleeps, or says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept = 0.0
        self.paused: list[float] = []

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        await asyncio.sleep(0)

    def pace(self, is_busy: Callable[[], bool], most_seconds: float = 3600) -> GivingWay:
        return GivingWay(is_busy, most_seconds, self.paused.append, sleep=self.sleep, clock=self.read)


async def step(pace: GivingWay, time: Time, seconds: float = 0.01, size: int = 0) -> float:
    """The pause after it."""
    slept = time.slept
    async with pace.step() as one:
        time.now += seconds
        one.size = size
    return time.slept - slept


async def test_a_step_on_a_busy_host_is_followed_by_a_longer_pause() -> None:
    time = Time()
    busy = time.pace(lambda: True)
    assert 0.1 < await step(busy, time) < 1
    # What comes at once was read before, or waits in a pipe.
    assert await step(busy, time, seconds=0, size=2**20) > 0.02
    # Whatever a step takes, the next isn't far.
    assert await step(busy, time, seconds=600) < 1.001
    assert await step(time.pace(lambda: False), time) == 0


async def test_a_pause_ends_when_the_host_comes_to_rest() -> None:
    time = Time()
    pace = time.pace(lambda: time.slept < 0.3)
    assert 0.3 <= await step(pace, time, seconds=1) < 0.4
    assert not pace.slow


async def test_pauses_have_an_end_on_a_host_that_is_always_busy() -> None:
    time = Time()
    pace = time.pace(lambda: True, 2)
    for _ in range(100):
        await step(pace, time)
    assert 2 <= time.slept < 3
    assert sum(time.paused) == pace.paused_seconds == time.slept
    assert not pace.slow


async def test_pauses_put_off_the_end_of_a_dump() -> None:
    async with within(0.001, DumpRefused) as put_off:
        put_off(3600)
        await asyncio.sleep(0.01)
    put_off(1)
    with pytest.raises(DumpRefused, match="took longer"):
        await _never_ending()


async def _never_ending() -> None:
    async with within(0.001, DumpRefused) as put_off:
        put_off(0.001)
        await asyncio.Event().wait()


@pytest.mark.parametrize("in_restore", [False, True])
def test_temporal_ends_no_dump_before_its_own_limit(*, in_restore: bool) -> None:
    """That of the largest database that a plan or an override may allow, on a host that is always busy."""
    limit = timedelta(seconds=2 * time_limit(MOST_STORAGE_GB * 2**30))
    ended = policies.backup("test-1", "back it up", in_restore=in_restore)["start_to_close_timeout"]
    assert ended is not None
    assert ended > limit


def test_a_load_has_the_time_that_its_restore_test_had() -> None:
    """Of a database of two terabytes."""
    assert TRANSFER_LIMIT.total_seconds() > time_limit(2 * 10**12)
    assert policies.transfer("test-1", "load it")["start_to_close_timeout"] == TRANSFER_LIMIT


async def test_readers_on_a_busy_host_take_turns() -> None:
    pace, reading = Time().pace(lambda: True), 0

    async def reader() -> None:
        nonlocal reading
        async with pace.step():
            reading += 1
            await asyncio.sleep(0)
            assert reading == 1
            reading -= 1

    await asyncio.gather(*(reader() for _ in range(5)))


async def test_a_look_that_fails_slows_nothing_down() -> None:
    answers = iter([True])
    looked = asyncio.Event()

    async def look() -> bool:
        for answer in answers:
            return answer
        looked.set()
        raise ConnectionError

    async with looking(look) as said:
        await asyncio.sleep(0)
        assert said()
        await looked.wait()
        await asyncio.sleep(0)
        assert not said()


@asynccontextmanager
async def working(scene: Scene) -> AsyncIterator[None]:
    """A client that asks one thing after the other."""
    tenant = tenant_of(scene.database, scene.box)
    address = (await scene.adapters.of_host(scene.database.host_id)).address
    client = await asyncpg.connect(
        host=address.host,
        port=address.port,
        user=tenant.login or tenant.name,
        password=tenant.password,
        database=tenant.name,
    )

    async def ask() -> None:
        while True:
            await client.execute("SELECT count(*) FROM notes")
            await asyncio.sleep(0.01)

    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        client.terminate()


class AtRest(GivingWay):
    """Goes on only when nobody is at work."""

    @asynccontextmanager
    async def step(self) -> AsyncIterator[DumpStep]:
        await until(self._rests)
        yield DumpStep()

    async def _rests(self) -> bool:
        return not self.slow


async def test_a_dump_that_a_restore_waits_for_gives_way_no_longer(scene: Scene) -> None:
    slots, host = HostSlots(), scene.database.host_id
    taking = BackupTaking(TERMS, scene.box, scene.store, scene.adapters, slots, giving_way=AtRest)
    backup = await scene.begun(BackupKind.SCHEDULED)
    async with slots.slot(host):
        dump = asyncio.create_task(taking.take(backup))
        try:
            await until(lambda: has_begun(backup))
            assert not dump.done()
            await fetch("UPDATE databases SET restoring_at = now() WHERE uuid = $1", scene.database.uuid)
            assert await asyncio.wait_for(dump, 60) is BackupStatus.COMPLETED
        finally:
            dump.cancel()
            await asyncio.gather(dump, return_exceptions=True)


async def has_begun(backup: UUID) -> bool:
    return await status_of(backup) == "running"


@pytest.mark.parametrize(
    ("kind", "yields"), [(BackupKind.MANUAL, True), (BackupKind.SCHEDULED, True), (BackupKind.FINAL, False)]
)
async def test_what_nobody_waits_for_gives_way(scene: Scene, kind: BackupKind, *, yields: bool) -> None:
    made: list[GivingWay] = []

    def giving_way(is_busy: Callable[[], bool], most_seconds: float, paused: Callable[[float], None]) -> GivingWay:
        made.append(GivingWay(is_busy, most_seconds, paused))
        return made[-1]

    taking = BackupTaking(TERMS, scene.box, scene.store, scene.adapters, HostSlots(), giving_way=giving_way)
    backup = await scene.begun(kind)
    async with working(scene):
        assert await taking.take(backup) is BackupStatus.COMPLETED
    assert [pace.paused_seconds > 0 for pace in made] == [True] * yields
