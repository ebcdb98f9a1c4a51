"""Idempotency keys of processes that died, and of days past."""

import asyncio
from datetime import timedelta
from uuid import UUID

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.in_process import lone_api
from tests.support.moves import make_active
from tests.support.waiting import until

# What a process that is killed between its commit and its answer leaves behind.
_DIE = "UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL, owner = gen_random_uuid(),"

_EXPIRE = "UPDATE idempotency_keys SET expires_at = now()"


async def test_a_retry_after_a_death_takes_up_the_same_work(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        original = body_of(await caller.create("a", key="k"), 202)
        await fetch(f"{_DIE} locked_until = now() + interval '1 hour'")
        error_of(await caller.create("a", key="k"), 409, "idempotency_key_in_progress")
        await fetch("UPDATE idempotency_keys SET locked_until = now()")
        error_of(await caller.create("b", key="k"), 409, "idempotency_key_conflict")
        again = body_of(await caller.create("a", key="k"), 202)
        assert "idempotency_replay" not in again
        assert again["data"] == original["data"]
        assert len(await fetch("SELECT 1 FROM databases")) == 1
        assert body_of(await caller.create("a", key="k"), 202)["idempotency_replay"] is True


async def test_a_database_that_is_paused_by_the_time_of_the_retry(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = data_of(await caller.create("a", key="k"), 202)["uuid"]
        await fetch(f"{_DIE} locked_until = now()")
        await make_active(uuid)
        await fetch("UPDATE databases SET status = 'paused', paused_reason = 'team' WHERE uuid = $1", UUID(uuid))
        body = body_of(await caller.create("a", key="k"), 201)
        assert (body["data"]["status"], body["message"]) == ("paused", "Database created.")


async def test_a_retried_delete_takes_up_the_same_work(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        path = f"/databases/{data_of(await caller.create('a'), 202)['uuid']}"
        original = data_of(await caller.delete(path, key="k"))
        await fetch(f"{_DIE} locked_until = now() WHERE key = 'k'")
        assert data_of(await caller.delete(path, key="k")) == original


async def test_a_deletion_that_is_not_confirmed_in_time(control_dsn: str) -> None:
    async with lone_api(control_dsn, revocation_timeout_seconds=0.3) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = data_of(await caller.create("a"), 202)["uuid"]
        await make_active(uuid)
        pending = await caller.delete(f"/databases/{uuid}", key="k")
        error_of(pending, 503, "revocation_pending")
        assert pending.headers["Retry-After"] == "5"
        await fetch("UPDATE databases SET revoked_at = now()")
        confirmed = body_of(await caller.delete(f"/databases/{uuid}", key="k"))
        assert confirmed["data"]["deleted"] is True
        assert "idempotency_replay" not in confirmed
        assert len(await fetch("SELECT 1 FROM events WHERE type = 'database.deleted'")) == 1


async def test_a_long_wait_keeps_its_key(control_dsn: str) -> None:
    async with lone_api(control_dsn, idempotency_lease_seconds=4.5) as api:
        await api.add_host()
        caller = await api.caller()
        first = asyncio.create_task(caller.create("a", wait=True, key="k"))
        (row,) = await until(lambda: fetch("SELECT uuid FROM databases"))
        (lease,) = await fetch("SELECT locked_until AS end FROM idempotency_keys")
        # Just renewed, so that no other request takes the key over because a busy machine renewed it late.
        renewed = (
            "SELECT 1 FROM idempotency_keys WHERE clock_timestamp() > $1 AND locked_until > clock_timestamp() + $2"
        )
        await until(lambda: fetch(renewed, lease["end"], timedelta(seconds=3.5)))
        error_of(await caller.create("a", wait=True, key="k"), 409, "idempotency_key_in_progress")
        await make_active(str(row["uuid"]))
        body_of(await first, 201)


async def test_a_client_that_hangs_up_frees_its_key(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        first = asyncio.create_task(caller.create("a", wait=True, key="k"))
        (row,) = await until(lambda: fetch("SELECT uuid FROM databases"))
        first.cancel()
        await until(lambda: fetch("SELECT 1 FROM idempotency_keys WHERE locked_until IS NULL"))
        await make_active(str(row["uuid"]))
        assert data_of(await caller.create("a", wait=True, key="k"), 201)["uuid"] == str(row["uuid"])


async def test_a_key_expires(control_dsn: str) -> None:
    async with lone_api(control_dsn, idempotency_ttl_seconds=60) as api:
        await api.add_host()
        caller = await api.caller()
        first = data_of(await caller.create("a", key="k"), 202)
        await fetch(_EXPIRE)
        second = body_of(await caller.create("a", key="k"), 202)
        assert second["data"]["uuid"] != first["uuid"]
        assert "idempotency_replay" not in second
        await fetch(_EXPIRE)
        assert data_of(await caller.create("b", key="k"), 202)["name"] == "b"


async def test_a_key_lives_a_day_and_a_dead_owner_keeps_it_ten_seconds(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        asked = asyncio.create_task(caller.create("a", wait=True, key="k"))
        (row,) = await until(
            lambda: fetch(
                "SELECT expires_at - created_at AS life, locked_until - created_at AS lease FROM idempotency_keys"
            )
        )
        assert (row["life"].total_seconds(), row["lease"].total_seconds()) == (86_400, 10)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def test_a_database_that_is_gone_by_the_time_of_the_retry(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        await api.add_host()
        caller = await api.caller()
        uuid = data_of(await caller.create("a", key="k"), 202)["uuid"]
        await fetch(f"{_DIE} locked_until = now()")
        body_of(await caller.delete(f"/databases/{uuid}"))
        await fetch("UPDATE databases SET destroyed_at = now(), password_sealed = NULL")
        error_of(await caller.create("a", key="k"), 404, "not_found")
        assert len(await fetch("SELECT 1 FROM databases")) == 1
