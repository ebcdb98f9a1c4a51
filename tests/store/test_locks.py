"""One holder at a time over all processes, and none that is dead."""

import asyncio
import sys
from uuid import UUID, uuid4

import pytest

from app.store.locks import LockBusy, LockLost, database_lock
from app.store.session import fetch
from tests.support.waiting import LIMIT_SECONDS, until


async def test_two_holders_take_turns(own_store: None) -> None:
    database, inside, most = uuid4(), 0, 0

    async def hold() -> None:
        nonlocal inside, most
        async with database_lock(database):
            inside += 1
            most = max(most, inside)
            await fetch("SELECT 1")  # whoever else may come in does so meanwhile
            inside -= 1

    await asyncio.gather(*(hold() for _ in range(8)))
    assert most == 1


async def test_locks_of_two_databases_are_two(own_store: None) -> None:
    async with asyncio.timeout(LIMIT_SECONDS), database_lock(uuid4()), database_lock(uuid4()):
        pass


async def test_an_error_inside_frees_it(own_store: None) -> None:
    database = uuid4()
    with pytest.raises(LookupError):
        async with database_lock(database):
            raise LookupError
    async with asyncio.timeout(LIMIT_SECONDS), database_lock(database):
        pass


async def test_waiting_ends(own_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    database = uuid4()
    async with database_lock(database):
        # For this one alone: where nobody holds it, a busy machine may take longer too.
        with monkeypatch.context() as hurried:
            hurried.setattr("app.store.locks.LOCK_WAIT_SECONDS", 0.2)
            with pytest.raises(LockBusy):
                async with database_lock(database):
                    pytest.fail("two hold it")
    async with database_lock(database):
        pass
    assert await _nobody_holds()


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
    await until(_one_waits)
    assert not waiting.done()
    holder.kill()
    await waiting
    await holder.wait()


async def _one_waits() -> bool:
    return bool(
        await fetch(
            "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()"
        )
    )


async def _take(database: UUID) -> None:
    async with database_lock(database):
        pass


async def _lose(database: UUID) -> None:
    async with database_lock(database):
        await fetch(
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
        )
        await until(_nobody_holds)


async def _nobody_holds() -> bool:
    return not await fetch(
        "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
