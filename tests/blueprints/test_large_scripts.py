"""Few large scripts are read at the same time; what waits for its slot holds nothing open."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from app.auth.keys import create_key, revoke_key
from app.auth.standing import LONG_SECONDS
from app.blueprints.large_scripts import LARGE_BYTES, LargeScripts
from app.store.session import fetch, fetch_scalar
from tests.support.answers import data_of, error_of
from tests.support.client import ALL_SCOPES
from tests.support.in_process import LoneApi
from tests.support.meeting import row_lock
from tests.support.moves import make_active
from tests.support.waiting import until

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


async def test_what_waits_for_its_slot_is_refused_to_a_key_that_was_revoked(lone: LoneApi) -> None:
    caller = await lone.caller()
    saved = data_of(await caller.post("/blueprints", {"name": "saved", "sql_content": "SELECT 1"}), 201)["uuid"]
    keys = [await create_key(user_id=caller.user_id, name="queued", scopes=ALL_SCOPES) for _ in range(2)]
    one, other = [replace(caller, api_key=key.api_key, key_id=key.id) for key in keys]
    sql = f"SELECT 1 -- {'x' * LARGE_BYTES}"
    async with row_lock(lone.control_dsn, "teams") as waiters:
        # It has the slot for as long as it waits for its team.
        holding = asyncio.ensure_future(caller.post("/blueprints", {"name": "first", "sql_content": sql}))
        await until(waiters)
        queued = [
            asyncio.ensure_future(request)
            for request in (
                one.post("/blueprints", {"name": "second", "sql_content": sql}),
                other.patch(f"/blueprints/{saved}", {"sql_content": sql}),
                caller.post("/blueprints", {"name": "third", "sql_content": sql}),
            )
        ]
        let_in = "SELECT count(last_used_at) = 2 FROM api_key_usage WHERE key_id = any($1::bigint[])"
        await until(lambda: fetch_scalar(bool, let_in, [one.key_id, other.key_id]))
        [now] = await fetch("SELECT clock_timestamp() AS at")
        for key in (one, other):
            await revoke_key(key.key_id)
        long_ago = "SELECT clock_timestamp() > $1::timestamptz + make_interval(secs => $2)"
        await until(lambda: fetch_scalar(bool, long_ago, now["at"], LONG_SECONDS + 0.2))
    data_of(await holding, 201)
    second, changed, third = await asyncio.gather(*queued)
    error_of(second, 403, "invalid_api_key")
    error_of(changed, 403, "invalid_api_key")
    data_of(third, 201)
    names = {row["name"]: row["version"] for row in await fetch("SELECT name, version FROM blueprints")}
    assert {name: names.get(name) for name in ("saved", "first", "second", "third")} == {
        "saved": 1,
        "first": 1,
        "second": None,
        "third": 1,
    }
    assert not await fetch("SELECT 1 FROM idempotency_keys WHERE response_status = 403")


async def test_a_short_script_with_long_values_waits_for_its_slot(lone: LoneApi) -> None:
    """A value counts in each of its places: neither the script nor what is sent is large."""
    caller = await lone.caller()
    key = await create_key(user_id=caller.user_id, name="second", scopes=ALL_SCOPES)
    other = replace(caller, api_key=key.api_key, key_id=key.id)
    database = data_of(await caller.create("db"), 202)["uuid"]
    await make_active(database)
    blueprint = {
        "name": "short",
        "sql_content": f"SELECT {', '.join(['{{a}}'] * 15)}",
        "variables": {"a": {"type": "string"}},
    }
    body = {"blueprint_uuid": data_of(await caller.post("/blueprints", blueprint), 201)["uuid"], "wait": False}
    long, path = "x" * (LARGE_BYTES // 15), f"/databases/{database}/blueprint_applications"
    async with row_lock(lone.control_dsn, "databases") as waiters:
        # It has the slot for as long as it waits for its database.
        first = asyncio.ensure_future(caller.post(path, {**body, "variables": {"a": long}}))
        await until(waiters)
        second = asyncio.ensure_future(other.post(path, {**body, "variables": {"a": long}}))
        let_in = "SELECT count(last_used_at) = 1 FROM api_key_usage WHERE key_id = $1"
        await until(lambda: fetch_scalar(bool, let_in, other.key_id))
        # This one needs no slot, so it comes to the lock.
        third = asyncio.ensure_future(caller.post(path, {**body, "variables": {"a": "x"}}))

        async def third_waits() -> bool:
            return await waiters() >= 2

        await until(third_waits)
        [now] = await fetch("SELECT clock_timestamp() AS at")
    ids = [data_of(answer, 202)["id"] for answer in await asyncio.gather(first, second, third)]
    begun = await fetch("SELECT id FROM blueprint_applications WHERE created_at < $1", now["at"])
    assert {row["id"] for row in begun} == {ids[0], ids[2]}


async def _open_transactions() -> int:
    """Those that were open at one moment: the server reads one session after the other, so that one look may have two
    that came one after the other."""
    first, again = [{tuple(row) for row in await fetch(_OPEN_TRANSACTIONS)} for _ in range(2)]
    return len(first & again)
