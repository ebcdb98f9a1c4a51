"""Rows of passkeys, and of the challenges that they sign once."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.auth.keys import hash_key
from app.core.ids import new_uuid
from app.store.session import execute, fetch_all, fetch_one, fetch_scalar, fetch_value, fetch_values

CHALLENGE_SECONDS = 300


class PasskeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    uuid: UUID
    user_id: int
    rp_id: str
    credential_id: bytes
    public_key: bytes
    sign_count: int
    name: str
    transports: list[str]
    synced: bool
    last_used_at: datetime | None
    created_at: datetime


_SELECT = """
SELECT id, uuid, user_id, rp_id, credential_id, public_key, sign_count, name, transports, synced, last_used_at,
       created_at
FROM passkeys
"""


async def keep_challenge(challenge: str, user_id: int | None) -> None:
    """Stores a challenge for five minutes."""
    await execute(
        """
        INSERT INTO passkey_challenges (hash, user_id, expires_at)
        VALUES ($1, $2, now() + make_interval(secs => $3))
        """,
        hash_key(challenge),
        user_id,
        float(CHALLENGE_SECONDS),
    )


async def use_challenge(challenge: str, user_id: int | None) -> bool:
    """Whether this challenge is there for this person, or for a sign-in (None), and nobody has used it; it is used up,
    in the current transaction."""
    used = await fetch_value(
        int,
        """
        DELETE FROM passkey_challenges
        WHERE hash = $1 AND user_id IS NOT DISTINCT FROM $2 AND expires_at > clock_timestamp() RETURNING id
        """,
        hash_key(challenge),
        user_id,
    )
    return used is not None


async def delete_expired_challenges(batch: int, _: timedelta) -> int:
    """Deletes expired challenges; returns how many."""
    gone = await fetch_values(
        int,
        """
        DELETE FROM passkey_challenges WHERE id IN (
            SELECT id FROM passkey_challenges WHERE expires_at <= now() ORDER BY expires_at LIMIT $1
            FOR UPDATE SKIP LOCKED
        ) RETURNING id
        """,
        batch,
    )
    return len(gone)


async def insert_passkey(
    user_id: int,
    *,
    rp_id: str,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    name: str,
    transports: Sequence[str],
    synced: bool,
) -> UUID | None:
    """Adds a passkey, and returns its uuid; None where somebody has it already."""
    return await fetch_value(
        UUID,
        """
        INSERT INTO passkeys (uuid, user_id, rp_id, credential_id, public_key, sign_count, name, transports, synced)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (credential_id) DO NOTHING RETURNING uuid
        """,
        new_uuid(),
        user_id,
        rp_id,
        credential_id,
        public_key,
        sign_count,
        name,
        list(transports),
        synced,
    )


async def find_passkey(user_id: int, uuid: UUID) -> PasskeyRecord | None:
    return await fetch_one(PasskeyRecord, f"{_SELECT} WHERE user_id = $1 AND uuid = $2", user_id, uuid)


async def find_credential(credential_id: bytes) -> PasskeyRecord | None:
    """The passkey, locked: nobody else uses it until the end of the transaction."""
    return await fetch_one(PasskeyRecord, f"{_SELECT} WHERE credential_id = $1 FOR NO KEY UPDATE", credential_id)


async def list_passkeys(user_id: int, *, after: int | None, limit: int) -> list[PasskeyRecord]:
    """The person's passkeys, newest first."""
    sql = f"{_SELECT} WHERE user_id = $1 AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3"
    return await fetch_all(PasskeyRecord, sql, user_id, after, limit)


async def count_passkeys(user_id: int) -> int:
    return await fetch_scalar(int, "SELECT count(*) FROM passkeys WHERE user_id = $1", user_id)


async def rename_passkey(passkey_id: int, name: str) -> None:
    await execute("UPDATE passkeys SET name = $2 WHERE id = $1", passkey_id, name)


async def note_used(passkey_id: int, *, sign_count: int, synced: bool) -> None:
    await execute(
        "UPDATE passkeys SET sign_count = $2, synced = $3, last_used_at = now() WHERE id = $1",
        passkey_id,
        sign_count,
        synced,
    )


async def delete_passkey(passkey_id: int) -> None:
    await execute("DELETE FROM passkeys WHERE id = $1", passkey_id)
