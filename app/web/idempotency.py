"""Requests that may be sent again: one key, one change, one answer. Interface specification, section 4.13.

The key's row is written in the transaction of the change, with the change's subject (`resource`). A process
that dies after that commit leaves a row from which a retry takes up the same work, once the dead owner's lease
has run out. Nothing is stored of answers that a retry might mend.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from litestar import MediaType, Request, Response

from app.auth.principal import Principal
from app.core.errors import AppError, IdempotencyKeyConflict, IdempotencyKeyInProgress
from app.core.ids import new_uuid
from app.core.secrets import Place, SecretBox
from app.dispatch.starter import Starter
from app.dispatch.starts import Accepted
from app.store.session import fetch, fetch_one, transaction
from app.web.body import canonical
from app.web.envelope import ErrorAnswer, ErrorBody, encode
from app.web.guards import idempotency_key
from app.web.request_id import current_request_id

_DECIDED = frozenset({404, 409, 422})
"""Refusals by the business rules, which a retry would meet again."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: msgspec.Struct


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a key that has its answer."""

    user_id: int
    key: str
    fingerprint: bytes
    resource: str
    response_status: int
    response_sealed: bytes
    ttl: float
    """Seconds."""


Keeping = Callable[[str, Answer], Kept]
"""The row for a change's subject and its answer."""


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    fingerprint: bytes
    response_status: int | None
    response_sealed: bytes | None


class _Taken(msgspec.Struct, frozen=True):
    resource: str | None
    """What an owner that died has committed."""


class _Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A key that this request owns for now."""

    user_id: int
    key: str
    fingerprint: bytes
    owner: UUID

    @property
    def place(self) -> Place:
        return Place("idempotency_keys", "response_sealed", f"{self.user_id}:{self.key}")


class Idempotency:
    """`ttl` and `lease` are in seconds: how long a key lives, and how long a dead owner keeps it in flight."""

    def __init__(self, box: SecretBox, starter: Starter, *, ttl: float, lease: float) -> None:
        self._box = box
        self._starter = starter
        self._ttl = ttl
        self._lease = lease

    async def run(
        self,
        request: Request[Principal, Any, Any],
        *,
        begin: Callable[[], Awaitable[Accepted]],
        finish: Callable[[str], Awaitable[Answer]],
        at_once: Callable[[Keeping], Awaitable[Answer | None]] | None = None,
    ) -> Response[bytes]:
        """`begin` makes the change, in this method's transaction, and returns its subject and the workflow to start
        after the commit; `finish` waits for what follows and builds the answer from that subject. A retry after a
        crash runs `finish` alone. Where the change is settled, `finish` runs in its transaction, and the answer is
        kept with it: one commit in place of two.

        `at_once` comes first: it may make the change and keep its answer in one statement of its own, which does
        nothing at all when the key has a row already. Where it returns None, nothing was done.

        Raises `IdempotencyKeyConflict` or `IdempotencyKeyInProgress`, and what the two functions raise.
        """
        claim = await _claim_for(request)
        try:
            at_once_answer = await at_once(partial(self._kept, claim)) if at_once else None
            if at_once_answer is not None:
                return _respond(at_once_answer.status, encode(at_once_answer.body))
            async with transaction():
                taken = await self._take(claim)
                if taken is None:
                    return await self._answer_to_repeat(claim)
                accepted = Accepted(subject=taken.resource) if taken.resource else await begin()
                answer = await finish(accepted.subject) if accepted.settled else None
                if answer is not None:
                    await self._store(claim, answer, accepted.subject)
                elif not taken.resource:
                    await self._note_subject(claim, accepted.subject)
        except AppError as error:
            if error.status in _DECIDED and not error.transient:
                repeat = await self._store_refusal(claim, error)
                if repeat is not None:
                    return repeat
            raise
        if accepted.start is not None:
            self._starter.start_soon(accepted.start)
        if answer is None:
            async with self._leased(claim):
                answer = await finish(accepted.subject)
                await self._store(claim, answer)
        return _respond(answer.status, encode(answer.body))

    async def _take(self, claim: _Claim) -> _Taken | None:
        """None unless the key is ours to work on: new, expired, or of an equal request whose owner died."""
        return await fetch_one(
            _Taken,
            """
            INSERT INTO idempotency_keys AS k (user_id, key, fingerprint, owner, locked_until, expires_at)
            VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5), now() + make_interval(secs => $6))
            ON CONFLICT (user_id, key) DO UPDATE SET
                fingerprint = excluded.fingerprint, owner = excluded.owner, locked_until = excluded.locked_until,
                resource = CASE WHEN k.expires_at <= now() THEN NULL ELSE k.resource END,
                created_at = CASE WHEN k.expires_at <= now() THEN now() ELSE k.created_at END,
                expires_at = CASE WHEN k.expires_at <= now() THEN excluded.expires_at ELSE k.expires_at END,
                response_status = NULL, response_sealed = NULL
            WHERE k.expires_at <= now()
               OR (k.fingerprint = excluded.fingerprint AND k.response_status IS NULL
                   AND coalesce(k.locked_until <= now(), true))
            RETURNING resource
            """,
            claim.user_id,
            claim.key,
            claim.fingerprint,
            claim.owner,
            self._lease,
            self._ttl,
        )

    async def _note_subject(self, claim: _Claim, subject: str) -> None:
        """From which a retry goes on, should this process die."""
        await fetch(
            "UPDATE idempotency_keys SET resource = $3 WHERE user_id = $1 AND key = $2",
            claim.user_id,
            claim.key,
            subject,
        )

    async def _answer_to_repeat(self, claim: _Claim) -> Response[bytes]:
        row = await fetch_one(
            _Row,
            "SELECT fingerprint, response_status, response_sealed FROM idempotency_keys"
            " WHERE user_id = $1 AND key = $2",
            claim.user_id,
            claim.key,
        )
        if row is None or (row.fingerprint == claim.fingerprint and row.response_sealed is None):
            raise IdempotencyKeyInProgress("The first request with this Idempotency-Key is still under way.")
        if row.fingerprint != claim.fingerprint:
            raise IdempotencyKeyConflict("This Idempotency-Key came before with another request.")
        assert row.response_sealed is not None
        assert row.response_status is not None
        return _respond(row.response_status, _replay(self._box.open(row.response_sealed, claim.place)))

    async def _store_refusal(self, claim: _Claim, error: AppError) -> Response[bytes] | None:
        """Its own transaction, since the one that was refused is rolled back. An equal request may have come in
        between: then its answer is the key's, and is returned."""
        body = ErrorAnswer(
            error=ErrorBody(code=error.code, message=error.message, details=error.details or msgspec.UNSET)
        )
        async with transaction():
            if await self._take(claim) is None:
                return await self._answer_to_repeat(claim)
            await self._store(claim, Answer(error.status, body))
        return None

    def _kept(self, claim: _Claim, subject: str, answer: Answer) -> Kept:
        return Kept(
            user_id=claim.user_id,
            key=claim.key,
            fingerprint=claim.fingerprint,
            resource=subject,
            response_status=answer.status,
            response_sealed=self._seal(claim, answer),
            ttl=self._ttl,
        )

    def _seal(self, claim: _Claim, answer: Answer) -> bytes:
        return self._box.seal(encode(answer.body).decode(), claim.place)

    async def _store(self, claim: _Claim, answer: Answer, subject: str | None = None) -> None:
        """Nothing happens when another request has taken the key over in the meantime."""
        await fetch(
            """
            UPDATE idempotency_keys SET response_status = $4, response_sealed = $5, owner = NULL, locked_until = NULL,
                   resource = coalesce($6, resource)
            WHERE user_id = $1 AND key = $2 AND owner = $3
            """,
            claim.user_id,
            claim.key,
            claim.owner,
            answer.status,
            self._seal(claim, answer),
            subject,
        )

    @asynccontextmanager
    async def _leased(self, claim: _Claim) -> AsyncIterator[None]:
        """Renews the lease for the block; when it fails, frees the key so that a retry goes on at once."""
        renewal = asyncio.create_task(self._renew(claim))
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):
                await fetch(
                    "UPDATE idempotency_keys SET owner = NULL, locked_until = NULL"
                    " WHERE user_id = $1 AND key = $2 AND owner = $3",
                    claim.user_id,
                    claim.key,
                    claim.owner,
                )
            raise
        finally:
            renewal.cancel()

    async def _renew(self, claim: _Claim) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            # A renewal that fails is made up for by the next one, within the same lease.
            with contextlib.suppress(Exception):
                await fetch(
                    "UPDATE idempotency_keys SET locked_until = now() + make_interval(secs => $4)"
                    " WHERE user_id = $1 AND key = $2 AND owner = $3",
                    claim.user_id,
                    claim.key,
                    claim.owner,
                    self._lease,
                )


async def _claim_for(request: Request[Principal, Any, Any]) -> _Claim:
    return _Claim(
        user_id=request.user.user_id,
        key=idempotency_key(request),
        fingerprint=await _fingerprint(request),
        owner=new_uuid(),
    )


async def _fingerprint(request: Request[Principal, Any, Any]) -> bytes:
    """SHA-256 over method, path, query and body, each in a form in which equal requests are equal."""
    body = canonical(await request.body())
    query = sorted((name, value) for name, value in request.query_params.multi_items())
    head = msgspec.json.encode([request.method, request.url.path, query])
    return hashlib.sha256(head + b"\x00" + body).digest()


def _replay(body: str) -> bytes:
    """The stored answer, marked as a replay, under this request's own id."""
    answer: dict[str, Any] = msgspec.json.decode(body)
    return msgspec.json.encode({**answer, "request_id": current_request_id(), "idempotency_replay": True})


def _respond(status: int, body: bytes) -> Response[bytes]:
    return Response(body, status_code=status, media_type=MediaType.JSON)
