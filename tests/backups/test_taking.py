"""Backups as a client takes, reads and deletes them."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.operations.kinds import OperationType
from app.store.session import fetch
from tests.operations.support import active, latest
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.waited import WAIT, waited, waited_in_vain
from tests.support.waiting import until


async def filled(caller: Caller, name: str = "db") -> dict[str, Any]:
    """A database with a little data."""
    database = await caller.created(name, db_type="postgres")
    connection = await asyncpg.connect(database["connection_string"])
    try:
        await connection.execute(
            "CREATE TABLE notes (id serial PRIMARY KEY, text text);"
            "INSERT INTO notes (text) SELECT 'note ' || n FROM generate_series(1, 100) n"
        )
    finally:
        await connection.close()
    return database


async def taken(caller: Caller, database: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """With the operation."""
    answer = await caller.post(f"/databases/{database['uuid']}/backups", fields, params=WAIT)
    return await waited(caller, answer, "/backups")


async def test_a_backup_is_taken(caller: Caller) -> None:
    database = await filled(caller)
    # Or the service may prove the backup by itself, as soon as it is there.
    data_of(await caller.patch(f"/databases/{database['uuid']}/backup_policy", {"enabled": False}))
    answer = await taken(caller, database, description="first", keep_days=3)
    backup = answer["data"]
    assert answer["operation"]["status"] == "succeeded"
    assert (backup["status"], backup["kind"], backup["tables"], backup["rows"]) == ("completed", "manual", 1, 100)
    assert (backup["database_uuid"], backup["description"]) == (database["uuid"], "first")
    assert backup["team_id"] == caller.team_id
    assert min(backup["stored_bytes"], backup["size_bytes"]) > 0
    assert backup["expires_at"] > backup["consistent_at"]
    assert backup["proof"]["status"] == "pending"
    assert data_of(await caller.get(f"/backups/{backup['uuid']}")) == backup
    for path in ("/backups", f"/databases/{database['uuid']}/backups"):
        assert [one["uuid"] for one in (await caller.get(path)).json()["data"]] == [backup["uuid"]]


@pytest.mark.parametrize("way", ["cancelled", "deleted"])
async def test_who_waits_for_one_that_is_not_taken_is_told(lone: LoneApi, way: str) -> None:
    caller, database = await active(lone)
    waiting = asyncio.create_task(caller.post(f"/databases/{database}/backups", {}, params=WAIT))
    try:
        [row] = await until(lambda: fetch("SELECT uuid FROM backups"))
        if way == "cancelled":
            operation = await latest(database, OperationType.BACKUP)
            data_of(await caller.post(f"/operations/{operation.uuid}/cancellations", None))
        else:
            data_of(await caller.delete(f"/backups/{row['uuid']}"))
        body = body_of(await waiting, 201)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert (body["data"]["status"], body["data"]["completed_at"]) == (way, None)
    assert body["message"] == f"The backup was not taken: its status is {way}."


async def test_a_backup_is_proven(caller: Caller) -> None:
    backup = (await taken(caller, await filled(caller)))["data"]
    answer = await caller.post(f"/backups/{backup['uuid']}/restore_tests", None, params=WAIT)
    in_vain = waited_in_vain(answer)
    proof = data_of(answer, 202 if in_vain else 201)["proof"]
    if in_vain:
        proof = await until(lambda: _proof(caller, backup))
    assert (proof["status"], proof["tables"], proof["rows"], proof["differences"]) == ("proven", 1, 100, [])
    assert proof["restore_seconds"] > 0


async def _proof(caller: Caller, backup: dict[str, Any]) -> dict[str, Any] | None:
    """At its end."""
    proof: dict[str, Any] = data_of(await caller.get(f"/backups/{backup['uuid']}"))["proof"]
    return None if proof["status"] in ("pending", "running") else proof
