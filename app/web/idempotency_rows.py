"""The rows of idempotency keys: which request owns one, for how long, and its stored answer."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from uuid import UUID

import msgspec

from app.core.background import repeating
from app.core.secrets import SecretBox, SecretLocation
from app.store.sealed import SealedColumn
from app.store.session import Statement, execute, fetch_one


class KeyClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A key as one request would own it."""

    user_id: int
    key: str
    fingerprint: bytes
    owner: UUID


class OwnedKey(msgspec.Struct, frozen=True):
    resource: str | None
    """The subject that an earlier owner committed before it died."""
    team_id: int | None
    """The team that the change concerns, if it concerns one that its caller was in."""


class EarlierRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a key came with before. Without a status it is under way."""

    fingerprint: bytes
    resource: str | None
    team_id: int | None
    response_status: int | None
    response_sealed: bytes | None


class KeyRows:
    """`ttl` and `lease` are in seconds: how long a key is stored, and how long it is in progress if its owner dies."""

    def __init__(self, box: SecretBox, *, ttl: float, lease: float) -> None:
        self._box = box
        self._ttl = ttl
        self._lease = lease

    def _seal(self, claim: KeyClaim, body: bytes) -> bytes:
        """Seals an answer, which may hold passwords."""
        return self._box.seal(body.decode(), _place(claim))

    def open(self, claim: KeyClaim, sealed: bytes) -> bytes:
        return self._box.open(sealed, _place(claim)).encode()

    async def take(self, claim: KeyClaim) -> OwnedKey | None:
        """Takes the key. None unless it is ours to work on: new, expired, or of an equal request whose owner died."""
        return await fetch_one(
            OwnedKey,
            """
            INSERT INTO idempotency_keys AS k (user_id, key, fingerprint, owner, locked_until, expires_at)
            VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5), now() + make_interval(secs => $6))
            ON CONFLICT (user_id, key) DO UPDATE SET
                fingerprint = excluded.fingerprint, owner = excluded.owner, locked_until = excluded.locked_until,
                resource = CASE WHEN k.expires_at <= now() THEN NULL ELSE k.resource END,
                team_id = CASE WHEN k.expires_at <= now() THEN NULL ELSE k.team_id END,
                created_at = CASE WHEN k.expires_at <= now() THEN now() ELSE k.created_at END,
                expires_at = CASE WHEN k.expires_at <= now() THEN excluded.expires_at ELSE k.expires_at END,
                response_status = NULL, response_sealed = NULL
            WHERE k.expires_at <= now()
               OR (k.fingerprint = excluded.fingerprint AND k.response_status IS NULL
                   AND coalesce(k.locked_until <= now(), true))
            RETURNING resource, team_id
            """,
            claim.user_id,
            claim.key,
            claim.fingerprint,
            claim.owner,
            self._lease,
            self._ttl,
        )

    def insertion(self, claim: KeyClaim, subject: str, team_id: int | None, status: int, body: bytes) -> Statement:
        """The statement that inserts a new key with its answer, as one step of the change. It returns no row where the
        key has a row already, even an expired one."""
        sql = """
        INSERT INTO idempotency_keys
            (user_id, key, fingerprint, resource, response_status, response_sealed, expires_at, team_id)
        SELECT $1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7), $8 WHERE {condition}
        ON CONFLICT (user_id, key) DO NOTHING RETURNING user_id
        """
        sealed = self._seal(claim, body)
        values = (claim.user_id, claim.key, claim.fingerprint, subject, status, sealed, self._ttl, team_id)
        return Statement(sql, values)

    async def find(self, claim: KeyClaim) -> EarlierRequest | None:
        return await fetch_one(
            EarlierRequest,
            "SELECT fingerprint, resource, team_id, response_status, response_sealed FROM idempotency_keys"
            " WHERE user_id = $1 AND key = $2",
            claim.user_id,
            claim.key,
        )

    async def store_subject(self, claim: KeyClaim, subject: str, team_id: int | None) -> None:
        """Stores the change's subject, from which a retry goes on if this process dies."""
        await execute(
            "UPDATE idempotency_keys SET resource = $3, team_id = $4 WHERE user_id = $1 AND key = $2",
            claim.user_id,
            claim.key,
            subject,
            team_id,
        )

    async def store(
        self, claim: KeyClaim, status: int, body: bytes, subject: str | None = None, team_id: int | None = None
    ) -> None:
        """Stores the answer. Nothing happens when another request has taken the key over in the meantime. A stored
        subject or team stays where none is given."""
        await execute(
            """
            UPDATE idempotency_keys SET response_status = $4, response_sealed = $5, owner = NULL, locked_until = NULL,
                   resource = coalesce($6, resource), team_id = coalesce($7, team_id)
            WHERE user_id = $1 AND key = $2 AND owner = $3
            """,
            claim.user_id,
            claim.key,
            claim.owner,
            status,
            self._seal(claim, body),
            subject,
            team_id,
        )

    @asynccontextmanager
    async def leased(self, claim: KeyClaim) -> AsyncIterator[None]:
        """Renews the lease for the block; when the block fails, frees the key so that a retry need not wait."""
        # A renewal that fails is made up for by the next one, within the same lease.
        async with repeating(partial(self._renew, claim), self._lease / 3, failure="lease_not_renewed"):
            try:
                yield
            except BaseException:
                with contextlib.suppress(Exception):
                    await self._free(claim)
                raise

    async def _free(self, claim: KeyClaim) -> None:
        await execute(
            "UPDATE idempotency_keys SET owner = NULL, locked_until = NULL"
            " WHERE user_id = $1 AND key = $2 AND owner = $3",
            claim.user_id,
            claim.key,
            claim.owner,
        )

    async def _renew(self, claim: KeyClaim) -> None:
        await execute(
            "UPDATE idempotency_keys SET locked_until = now() + make_interval(secs => $4)"
            " WHERE user_id = $1 AND key = $2 AND owner = $3",
            claim.user_id,
            claim.key,
            claim.owner,
            self._lease,
        )


def _place(claim: KeyClaim) -> SecretLocation:
    return SecretLocation("idempotency_keys", "response_sealed", f"{claim.user_id}:{claim.key}")


SEALED_RESPONSE = SealedColumn(table="idempotency_keys", column="response_sealed", row="s.user_id || ':' || s.key")


async def delete_expired_keys(most: int, _age: timedelta) -> int:
    """Deletes keys that have expired. A key whose request still runs stays: its answer is about to be written. See
    `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM idempotency_keys WHERE id IN (
            SELECT id FROM idempotency_keys
            WHERE expires_at <= now() AND (response_status IS NOT NULL OR locked_until IS NULL OR locked_until <= now())
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
    )
