"""Waiting for a row: told at once, and not lost with the listener's connection."""

import asyncio
import contextlib
from uuid import UUID, uuid4

import pytest

from app.store.notify import RowWatch, announce, work_on_notices
from app.store.session import fetch, transaction
from tests.support.proxy import proxy
from tests.support.store import store
from tests.support.waiting import LIMIT_SECONDS, until


class Row:
    """A row that a waiter looks at, and how often it looked."""

    def __init__(self) -> None:
        self.done = False
        self.looks = 0

    async def look(self) -> str | None:
        self.looks += 1
        return "done" if self.done else None


async def begun(watch: RowWatch) -> None:
    """Waits until a new watch listens, and has woken everybody, as it does then: whoever waits from now on is woken by
    a notice, or by a loss."""
    with watch.changes(uuid4()) as woken:
        await asyncio.wait_for(woken.wait(), LIMIT_SECONDS)


async def nobody_listens() -> bool:
    return not await fetch("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")


async def changed(row: Row, database: UUID) -> None:
    row.done = True
    await announce(database)


async def test_what_holds_already_is_not_waited_for(control_dsn: str) -> None:
    async with store(control_dsn), RowWatch(control_dsn).running() as watch:
        row = Row()
        row.done = True
        assert await watch.wait_for(uuid4(), row.look, LIMIT_SECONDS) == "done"
        assert row.looks == 1


async def test_a_notice_wakes_only_its_waiters(control_dsn: str) -> None:
    async with store(control_dsn), RowWatch(control_dsn).running() as watch:
        await begun(watch)
        database, other_database, rows, other = uuid4(), uuid4(), [Row() for _ in range(3)], Row()
        waiting = [asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS)) for row in rows]
        elsewhere = asyncio.create_task(watch.wait_for(other_database, other.look, LIMIT_SECONDS))
        await until(lambda: all(row.looks == 1 for row in [*rows, other]))
        for row in rows:
            row.done = True
        await announce(database)
        assert await asyncio.gather(*waiting) == ["done"] * 3
        assert other.looks == 1
        await changed(other, other_database)
        assert await elsewhere == "done"
        assert other.looks == 2


async def test_a_notice_is_sent_with_the_commit_and_not_without_it(control_dsn: str) -> None:
    async with store(control_dsn), RowWatch(control_dsn).running() as watch:
        await begun(watch)
        database, marker, row, behind = uuid4(), uuid4(), Row(), Row()
        waiting = asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS))
        marked = asyncio.create_task(watch.wait_for(marker, behind.look, LIMIT_SECONDS))
        await until(lambda: row.looks == behind.looks == 1)
        with contextlib.suppress(LookupError):
            async with transaction():
                await announce(database)
                raise LookupError
        # Notices come in the order of their commits.
        await changed(behind, marker)
        assert await marked == "done"
        assert row.looks == 1
        async with transaction():
            await changed(row, database)
        assert await waiting == "done"


async def test_the_time_limit(control_dsn: str) -> None:
    async with store(control_dsn), RowWatch(control_dsn).running() as watch:
        async with asyncio.timeout(LIMIT_SECONDS):
            assert await watch.wait_for(uuid4(), Row().look, 0.2) is None


async def test_a_change_before_the_listener_listens_is_seen(control_dsn: str) -> None:
    watch, database, row = RowWatch(control_dsn), uuid4(), Row()
    async with store(control_dsn):
        waiting = asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS))
        await until(lambda: row.looks == 1)
        await changed(row, database)
        async with watch.running():
            assert await waiting == "done"


async def test_a_change_while_the_listener_is_away_is_seen_when_it_is_back(control_dsn: str) -> None:
    async with proxy(control_dsn) as way, store(control_dsn), RowWatch(way.dsn(control_dsn)).running() as watch:
        await begun(watch)
        database, row = uuid4(), Row()
        waiting = asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS))
        await until(lambda: row.looks > 0)
        await way.cut()
        await until(nobody_listens)
        await changed(row, database)
        await way.restore()
        assert await waiting == "done"


async def test_a_change_is_seen_although_the_network_swallows_packets(control_dsn: str) -> None:
    async with (
        proxy(control_dsn) as way,
        store(control_dsn),
        RowWatch(way.dsn(control_dsn), probe_seconds=0.2).running() as watch,
    ):
        await begun(watch)
        database, row = uuid4(), Row()
        waiting = asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS))
        await until(lambda: row.looks > 0)
        way.swallow()
        await changed(row, database)
        assert await waiting == "done"


async def test_nobody_looks_while_nothing_happens(control_dsn: str) -> None:
    # With the usual time to answer a probe: a late answer is a loss, after which everybody looks.
    async with store(control_dsn), RowWatch(control_dsn).running() as watch:
        await begun(watch)
        database, row = uuid4(), Row()
        waiting = asyncio.create_task(watch.wait_for(database, row.look, LIMIT_SECONDS))
        await until(lambda: row.looks > 0)
        looks = row.looks
        # As long as the listener's connection needs to be probed: nothing else is due before.
        await until(probed)
        assert row.looks == looks
        await changed(row, database)
        assert await waiting == "done"


async def probed() -> bool:
    return bool(
        await fetch(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE '%listener' AND query = 'SELECT 1'"
        )
    )


async def test_work_follows_notices_until_there_is_none(control_dsn: str) -> None:
    done: list[int] = []
    left = [2]

    async def work() -> bool:
        done.append(left[0])
        left[0] -= 1
        return left[0] > 0

    async with store(control_dsn):
        working = asyncio.create_task(
            work_on_notices(control_dsn, "things", work, failure="waiting", fallback_seconds=60, payload="mine")
        )
        # Once more when it has begun to listen, for what it may have missed.
        await until(lambda: done == [2, 1, 0])
        left[0] = 1
        await fetch("SELECT pg_notify('things', 'of another')")
        await fetch("SELECT pg_notify('things', 'mine')")
        await until(lambda: done == [2, 1, 0, 1])
        await end(working)


async def test_work_that_fails_is_repeated_without_a_notice(control_dsn: str) -> None:
    tries = 0

    async def work() -> bool:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionError("away")
        return False

    async with store(control_dsn):
        working = asyncio.create_task(
            work_on_notices(control_dsn, "things", work, failure="waiting", fallback_seconds=0.01)
        )
        await until(lambda: tries > 3)
        await end(working)


async def test_another_event_calls_for_the_work(control_dsn: str) -> None:
    changed, tries = asyncio.Event(), 0

    async def work() -> bool:
        nonlocal tries
        tries += 1
        return False

    async with store(control_dsn):
        working = asyncio.create_task(
            work_on_notices(control_dsn, "things", work, failure="waiting", fallback_seconds=60, changed=changed)
        )
        # Once at first, and once when it has begun to listen.
        await until(lambda: tries == 2)
        changed.set()
        await until(lambda: tries == 3)
        await end(working)


async def test_what_nothing_called_for_may_be_another_work(control_dsn: str) -> None:
    called, polled = 0, 0

    async def work() -> bool:
        nonlocal called
        called += 1
        return False

    async def poll() -> bool:
        nonlocal polled
        polled += 1
        return False

    async with store(control_dsn):
        working = asyncio.create_task(
            work_on_notices(control_dsn, "things", work, failure="waiting", fallback_seconds=0.01, poll=poll)
        )
        # Once at first, and once when it has begun to listen.
        await until(lambda: called == 2 and polled > 2)
        await fetch("SELECT pg_notify('things', '')")
        await until(lambda: called == 3)
        await end(working)


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_that_comes_together_with_a_notice_ends_the_work(control_dsn: str, turns: int) -> None:
    worked, wake = asyncio.Event(), asyncio.Event()

    async def work() -> bool:
        worked.set()
        return False

    working = asyncio.create_task(
        work_on_notices(control_dsn, "things", work, failure="waiting", fallback_seconds=60, changed=wake)
    )
    await worked.wait()
    await asyncio.sleep(0)
    wake.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    working.cancel()
    done, _ = await asyncio.wait([working], timeout=LIMIT_SECONDS)
    assert done
