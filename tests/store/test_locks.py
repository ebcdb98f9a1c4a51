"""One holder at a time over all processes, and none that is dead."""

import asyncio
import sys
import time
from uuid import UUID, uuid4

import pytest

from app.store.locks import LockBusy, LockLost, database_lock
from app.store.session import fetch


async def test_two_holders_take_turns(own_store: None) -> None:
    database, inside, most = uuid4(), 0, 0

    async def hold() -> None:
        nonlocal inside, most
        async with database_lock(database):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.02)
            inside -= 1

    await asyncio.gather(*(hold() for _ in range(8)))
    assert most == 1


async def test_locks_of_two_databases_are_two(own_store: None) -> None:
    async with asyncio.timeout(5), database_lock(uuid4()), database_lock(uuid4()):
        pass


async def test_an_error_inside_frees_it(own_store: None) -> None:
    database = uuid4()
    with pytest.raises(LookupError):
        async with database_lock(database):
            raise LookupError
    async with asyncio.timeout(5), database_lock(database):
        pass


async def test_waiting_ends(own_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.locks.LOCK_WAIT_SECONDS", 0.2)
    database = uuid4()
    async with database_lock(database):
        with pytest.raises(LockBusy):
            async with database_lock(database):
                pytest.fail("two hold it")
    async with database_lock(database):
        pass
    assert not await fetch(
        "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )


async def test_a_holder_whose_connection_broke_learns_of_it(own_store: None) -> None:
    with pytest.raises(LockLost):
        await _lose(uuid4())


async def test_a_killed_holder_loses_it(own_store: None, control_dsn: str) -> None:
    database = uuid4()
    arguments = ["-m", "tests.store.hold_lock", control_dsn, str(database)]
    holder = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    waiting = asyncio.create_task(_take(database))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    started = time.monotonic()
    holder.kill()
    await waiting
    assert time.monotonic() - started < 5
    await holder.wait()


async def _take(database: UUID) -> None:
    async with database_lock(database):
        pass


async def _lose(database: UUID) -> None:
    async with database_lock(database):
        await fetch(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
        )
        await asyncio.sleep(0.1)
