"""Few large scripts are read at the same time; what waits for its slot holds nothing open."""

import asyncio
from contextlib import AsyncExitStack

from app.blueprints.large_scripts import LARGE_BYTES, LargeScripts
from app.store.session import fetch
from tests.support.answers import data_of
from tests.support.in_process import LoneApi

_OPEN_TRANSACTIONS = """
SELECT pid, xact_start FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'
"""


async def waits(scripts: LargeScripts, team: int, size: int = LARGE_BYTES) -> bool:
    """Whether no slot is free."""
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(0.05):
                await stack.enter_async_context(scripts.slot([team], size))
        except TimeoutError:
            return True
    return False


async def test_a_team_has_one_slot_and_others_go_beside_it() -> None:
    scripts = LargeScripts()
    async with scripts.slot([1], LARGE_BYTES):
        assert await waits(scripts, 1)
        assert not await waits(scripts, 2)
        assert not await waits(scripts, 1, LARGE_BYTES - 1)
        async with scripts.slot([2], LARGE_BYTES):
            assert await waits(scripts, 3)
    assert not await waits(scripts, 1)


async def test_what_waits_for_its_slot_holds_no_transaction_open(lone: LoneApi) -> None:
    caller = await lone.caller()
    sql = "".join(f"CREATE TABLE t{number} (id integer PRIMARY KEY, name varchar(20));\n" for number in range(1500))
    assert len(sql) > LARGE_BYTES
    saving = [
        asyncio.create_task(
            caller.request("POST", "/blueprints", key=f"k{number}", json={"name": f"b{number}", "sql_content": sql})
        )
        for number in range(6)
    ]
    most = 0
    while not all(task.done() for task in saving):
        most = max(most, await _open_transactions())
        await asyncio.sleep(0.02)
    assert most <= 1
    for task in saving:
        data_of(await task, 201)


async def _open_transactions() -> int:
    """Those that were open at one moment: the server reads one session after the other, so that one look may have two
    that came one after the other."""
    first, again = [{tuple(row) for row in await fetch(_OPEN_TRANSACTIONS)} for _ in range(2)]
    return len(first & again)
