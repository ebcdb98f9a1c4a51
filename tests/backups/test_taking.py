"""Backups as a client takes, reads and deletes them."""

from typing import Any

import asyncpg

from tests.support.answers import data_of
from tests.support.client import Caller


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
    answer = await caller.post(f"/databases/{database['uuid']}/backups?wait=true&timeout=60", fields)
    backup: dict[str, Any] = data_of(answer, 201)
    return backup


async def test_a_backup_is_taken(caller: Caller) -> None:
    database = await filled(caller)
    answer = await caller.post(
        f"/databases/{database['uuid']}/backups?wait=true&timeout=60", {"description": "first", "keep_days": 3}
    )
    backup = data_of(answer, 201)
    assert answer.json()["operation"]["status"] == "succeeded"
    assert (backup["status"], backup["kind"], backup["tables"], backup["rows"]) == ("completed", "manual", 1, 100)
    assert (backup["database_uuid"], backup["description"]) == (database["uuid"], "first")
    assert min(backup["stored_bytes"], backup["size_bytes"]) > 0
    assert backup["expires_at"] > backup["consistent_at"]
    assert backup["proof"]["status"] == "pending"
    assert data_of(await caller.get(f"/backups/{backup['uuid']}")) == backup
    for path in ("/backups", f"/databases/{database['uuid']}/backups"):
        assert [one["uuid"] for one in (await caller.get(path)).json()["data"]] == [backup["uuid"]]


async def test_a_backup_is_proven(caller: Caller) -> None:
    backup = await taken(caller, await filled(caller))
    answer = await caller.post(f"/backups/{backup['uuid']}/restore_tests?wait=true&timeout=60", None)
    proof = data_of(answer, 201)["proof"]
    assert (proof["status"], proof["tables"], proof["rows"], proof["differences"]) == ("proven", 1, 100, [])
    assert proof["restore_seconds"] > 0
