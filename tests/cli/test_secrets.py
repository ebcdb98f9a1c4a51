"""`headwater secrets`: a key that seals no more is retired while the service runs."""

import asyncio
import base64
import os
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.cli.secrets import SEALED
from app.core.secrets import InvalidSecret, SecretBox, SecretLocation
from app.store.sealed import SealedColumn, reseal
from app.store.session import fetch
from app.web.idempotency_rows import SEALED_RESPONSE
from app.webhooks.records import SEALED_SECRET, secret_place
from tests.cli.command import Headwater
from tests.support.backups import backed_up, folder_store, restored
from tests.support.lone_pool import lone_pool
from tests.support.ports import free_port
from tests.support.store import store
from tests.support.waiting import until

NOT_SEALED = {
    ("api_keys", "hash"),
    ("api_keys", "previous_hash"),
    ("audit_leaves", "leaves"),
    ("audit_seals", "hash"),
    ("audit_seals", "leaves_hash"),
    ("audit_seals", "previous"),
    ("idempotency_keys", "fingerprint"),
    ("invitations", "token_hash"),
    ("passkey_challenges", "hash"),
    ("passkeys", "credential_id"),
    ("passkeys", "public_key"),
    ("sessions", "hash"),
    ("sign_in_links", "token_hash"),
}
"""Digests, which nothing opens, and what is no secret."""


def key(name: str) -> str:
    return f"{name}:{base64.b64encode(os.urandom(32)).decode()}"


async def test_the_list_of_sealed_columns_is_whole(own_store: None) -> None:
    rows = await fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND (data_type = 'bytea' OR column_name LIKE '%sealed%')"
    )
    there = {(row["table_name"], row["column_name"]) for row in rows}
    assert there - NOT_SEALED == {(one.table, one.column) for one in SEALED}
    assert len(SEALED) == len({one.name for one in SEALED})


async def test_everything_is_sealed_anew_where_it_lies(headwater: Headwater, control_dsn: str, tmp_path: Path) -> None:
    """A value in every sealed column, at the place that its owner opens it at, and a backup in the store."""
    first, second = key("first"), key("second")
    old = SecretBox.from_setting(first)
    async with lone_pool(control_dsn) as pool:
        await pool.api.add_host()
        caller = await pool.api.caller()
        await caller.create("one", db_type="postgres")
    async with store(control_dsn):
        await fetch("DELETE FROM idempotency_keys")
        secret = await _fill()
        places = {}
        for column in SEALED:
            [row] = await fetch(f"SELECT s.id, {column.row} AS place FROM {column.table} s")
            places[column.name] = SecretLocation(column.table, column.column, row["place"])
            sealed = old.seal(column.name, places[column.name])
            await fetch(f"UPDATE {column.table} SET {column.column} = $1", sealed)
        assert places[SEALED_SECRET.name] == secret_place(secret)
    kept = await backed_up(folder_store(tmp_path, old), b"a dump")
    command = headwater.with_settings(SECRET_KEYS=f"{second},{first}", BACKUP_STORE=tmp_path.as_uri())
    everything = len(SEALED) + 1
    before = await command.json("secrets", "keys")
    assert before["values"] == {"second": 0, "first": everything}
    assert before["retirable"] == []
    after = await command.json("secrets", "reseal")
    assert (after["resealed"], after["newest"], after["retirable"]) == (everything, "second", ["first"])
    assert after["values"] == {"second": everything, "first": 0}
    assert (await command.json("secrets", "reseal"))["resealed"] == 0
    only = SecretBox.from_setting(second)
    assert await restored(folder_store(tmp_path, only), kept.backup) == b"a dump"
    async with store(control_dsn):
        for column in SEALED:
            [row] = await fetch(f"SELECT {column.column} AS sealed FROM {column.table}")
            assert only.open(row["sealed"], places[column.name]) == column.name
            with pytest.raises(InvalidSecret):
                old.open(row["sealed"], places[column.name])


async def test_without_the_backup_store_no_key_may_go(
    headwater: Headwater, own_store: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a-test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-tests")
    command = headwater.with_settings(
        SECRET_KEYS=f"{key('second')},{key('first')}",
        BACKUP_STORE="s3://no-such-bucket",
        BACKUP_STORE_TIMEOUT_SECONDS="1",
    )
    shown = await command.json("secrets", "reseal")
    assert shown["retirable"] == []
    assert "no-such-bucket" in shown["backup_store_error"]


async def _fill() -> UUID:
    """A row in each table that has none yet. Returns the webhook secret's uuid."""
    secret = uuid4()
    await fetch("INSERT INTO query_readers (database_id, password_sealed) SELECT id, '' FROM databases")
    await fetch(
        "INSERT INTO credential_rotations (uuid, database_id, status, overlap_seconds, login_name, previous_login)"
        " SELECT $1, id, 'completed', 0, '', '' FROM databases",
        uuid4(),
    )
    await fetch(
        "INSERT INTO database_users (uuid, database_id, name, login_name, access, connection_limit, password_sealed,"
        " status) SELECT $1, id, 'one', '', 'read_only', 1, '', 'active' FROM databases",
        uuid4(),
    )
    await fetch(
        "INSERT INTO idempotency_keys (user_id, key, fingerprint, expires_at)"
        " SELECT id, 'a:key', '', now() + interval '1 day' FROM users"
    )
    await fetch("INSERT INTO webhook_endpoints (team_id, url) SELECT id, 'https://example.com' FROM teams")
    await fetch(
        "INSERT INTO webhook_secrets (uuid, endpoint_id, secret_sealed) SELECT $1, id, '' FROM webhook_endpoints",
        secret,
    )
    await fetch("INSERT INTO blueprints (uuid, team_id, name) SELECT $1, id, 'one' FROM teams", uuid4())
    await fetch(
        "INSERT INTO blueprint_applications (blueprint_id, blueprint_version, database_id)"
        " SELECT b.id, 1, d.id FROM blueprints b, databases d"
    )
    await fetch(
        "INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan, quotas,"
        " kind, priority) SELECT $1, t.id, d.id, d.uuid, '', '', '', '', '{}', 'manual', 0 FROM databases d, teams t",
        uuid4(),
    )
    return secret


async def many(count: int, box: SecretBox) -> SealedColumn:
    """So many answers of one user's, sealed by this box."""
    await fetch("INSERT INTO users (email, name) VALUES ('a@example.com', 'A')")
    [user] = await fetch("SELECT id FROM users")
    for number in range(count):
        place = SecretLocation("idempotency_keys", "response_sealed", f"{user['id']}:{number}")
        await fetch(
            "INSERT INTO idempotency_keys (user_id, key, fingerprint, response_sealed, expires_at)"
            " VALUES ($1, $2, '', $3, now() + interval '1 day')",
            user["id"],
            str(number),
            box.seal(str(number), place),
        )
    return SEALED_RESPONSE


async def test_a_crash_between_batches_loses_nothing(own_store: None) -> None:
    first, second = key("first"), key("second")
    column = await many(450, SecretBox.from_setting(first))
    box = SecretBox.from_setting(f"{second},{first}")
    batches = reseal(box, column)
    assert (await anext(batches)).done == 200
    await batches.aclose()
    assert sum([batch.done async for batch in reseal(box, column)]) == 250


async def test_what_is_written_meanwhile_stays_as_it_was_written(control_dsn: str) -> None:
    first, second = key("first"), key("second")
    other: Any = await asyncpg.connect(control_dsn)
    async with store(control_dsn):
        column = await many(1, SecretBox.from_setting(first))
        writing = other.transaction()
        await writing.start()
        await other.execute("UPDATE idempotency_keys SET response_sealed = 'newer'")
        batches = reseal(SecretBox.from_setting(f"{second},{first}"), column)
        resealing = asyncio.ensure_future(anext(batches))
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        await until(lambda: other.fetch(waiting))
        await writing.commit()
        assert (await resealing).done == 0
        assert (await fetch("SELECT response_sealed FROM idempotency_keys"))[0]["response_sealed"] == b"newer"
    await other.close()


async def test_what_no_key_opens_is_named_and_left(headwater: Headwater, control_dsn: str) -> None:
    lost, held = key("lost"), key("held")
    async with store(control_dsn):
        column = await many(1, SecretBox.from_setting(lost))
        [row] = await fetch("SELECT id, response_sealed AS sealed FROM idempotency_keys")
    said = await headwater.with_settings(SECRET_KEYS=held).json("secrets", "reseal")
    assert said["unreadable"] == [f"{column.name} {row['id']}"]
    assert said["values"] == {"held": 0, "lost": 1}
    async with store(control_dsn):
        assert (await fetch("SELECT response_sealed AS sealed FROM idempotency_keys"))[0]["sealed"] == row["sealed"]
