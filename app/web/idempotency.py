"""Requests that may be sent again: one key, one change, one answer. Interface specification, section 4.13.

The key's row is written in the transaction of the change, with the change's subject (`resource`). A process
that dies after that commit leaves a row from which a retry takes up the same work, once the dead owner's lease
has run out. What the business rules refuse is stored too: it is the key's answer, also when its cause is gone.
"""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from time import monotonic
from typing import Any

import msgspec
from litestar import MediaType, Request, Response
from litestar.connection import ASGIConnection

from app.audit import events as audit
from app.audit.drafts import current_draft, note
from app.auth import standing
from app.auth.principal import Principal
from app.core.context import current_request_id
from app.core.errors import AppError, IdempotencyKeyConflict, IdempotencyKeyInProgress
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.outbox.starting import Starter
from app.outbox.workflow_starts import Accepted
from app.store.session import Statement, transaction
from app.web.admitted import expect_still
from app.web.body import canonical
from app.web.envelope import ErrorAnswer, ErrorBody
from app.web.idempotency_rows import KeyClaim, KeyRows

IDEMPOTENCY_HEADER = "Idempotency-Key"
IDEMPOTENCY_KEY_PATTERN = r"^[!-~]([ -~]{0,253}[!-~])?$"
"""1 to 255 printable ASCII characters, no blank at either end."""
_DECIDED = frozenset({404, 409, 422})
"""Refusals by the business rules, but for those that are `transient`."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: msgspec.Struct


StoreAnswer = Callable[[str, Answer], tuple[Statement, ...]]
"""Takes a change's subject and its answer; returns the steps that store the answer under the request's key, and the
change's event in the audit log."""

Immediate = Callable[[StoreAnswer], Awaitable[Answer | None]]
"""Makes a change and stores its answer at once. None where it did nothing."""


class Idempotency:
    """`ttl` and `lease` are in seconds: how long a key is stored, and how long it is in progress if its owner dies."""

    def __init__(self, box: SecretBox, starter: Starter, *, ttl: float, lease: float) -> None:
        self._rows = KeyRows(box, ttl=ttl, lease=lease)
        self._starter = starter

    async def run(
        self,
        request: Request[Principal, Any, Any],
        *,
        begin: Callable[[], Awaitable[Accepted]],
        finish: Callable[[str], Awaitable[Answer]],
        immediate: Immediate | None = None,
        during_begin: AbstractAsyncContextManager[Any] | None = None,
    ) -> Response[bytes]:
        """`begin` makes the change, in this method's transaction, and returns its subject and the workflow to start
        after the commit; `finish` waits for what follows and builds the answer from that subject. A retry after a crash
        runs `finish` alone. Where the change is settled, `finish` runs in its transaction, and the answer is stored
        with it: one commit in place of two.

        `immediate` comes first: it may make the change and store its answer in one statement of its own, which does
        nothing where the key has a row already. Where it returns None, nothing was done.

        Each change has its event in the audit log, in its own transaction; a refusal that is stored has one too, and a
        repeated request has none. A repeated one is answered if the caller is in the team that the change was about.

        `during_begin` is entered before the transaction, and left before anything is waited for.

        Raises `IdempotencyKeyConflict` or `IdempotencyKeyInProgress`, and what the functions raise; what
        `standing.expect` does, where it took long until `begin`, or `finish` took long; and `NotAMember` or
        `InsufficientRole` for a repeated request.
        """
        claim = await _claim_for(request)
        try:
            answer = await self._immediately(request, claim, immediate) if immediate else None
            if answer is not None:
                audit.settle()
                return _respond(answer)
            async with during_begin or nullcontext(), transaction():
                owned = await self._rows.take(claim)
                if owned is None:
                    return await self._answer_to_repeat(request, claim)
                await expect_still(request)
                if owned.resource:
                    # The event is there: it was committed with the subject.
                    audit.settle()
                    note(team_id=owned.team_id)
                    _check_team(request, owned.team_id)
                accepted = Accepted(subject=owned.resource) if owned.resource else await begin()
                answer = await finish(accepted.subject) if accepted.settled else None
                if answer is not None:
                    body = msgspec.json.encode(answer.body)
                    await self._rows.store(claim, answer.status, body, accepted.subject, _team_of(request.user))
                elif not owned.resource:
                    await self._rows.store_subject(claim, accepted.subject, _team_of(request.user))
                await audit.append_drafted(accepted.subject)
            audit.settle()
        except AppError as error:
            if error.status in _DECIDED and not error.transient:
                repeat = await self._store_refusal(request, claim, error)
                if repeat is not None:
                    return repeat
            raise
        if accepted.start is not None:
            self._starter.start_soon(accepted.start)
        if answer is None:
            started = monotonic()
            async with self._rows.leased(claim):
                answer = await finish(accepted.subject)
                await self._rows.store(claim, answer.status, msgspec.json.encode(answer.body))
            await standing.expect_after(started, request.user, _team_of(request.user))
        return _respond(answer)

    async def _immediately(
        self, request: Request[Principal, Any, Any], claim: KeyClaim, immediate: Immediate
    ) -> Answer | None:
        """Calls `immediate`. Where a change was begun under this key, a refusal of this request as a new one is not
        stored in place of the change's answer: a caller who has left the team since is told so, and once they are a
        member again, a retry goes on with the change."""
        try:
            return await immediate(partial(self._insertion, request.user, claim))
        except AppError:
            earlier = await self._rows.find(claim)
            if earlier is None or earlier.fingerprint != claim.fingerprint or earlier.resource is None:
                raise
            return None

    async def _answer_to_repeat(self, request: Request[Principal, Any, Any], claim: KeyClaim) -> Response[bytes]:
        row = await self._rows.find(claim)
        if row is None or (row.fingerprint == claim.fingerprint and row.response_sealed is None):
            audit.settle()
            raise IdempotencyKeyInProgress("The first request with this Idempotency-Key is still under way.")
        if row.fingerprint != claim.fingerprint:
            raise IdempotencyKeyConflict("This Idempotency-Key came before with another request.")
        assert row.response_sealed is not None
        assert row.response_status is not None
        audit.settle()
        _check_team(request, row.team_id)
        return _reply(row.response_status, _replay(self._rows.open(claim, row.response_sealed)))

    async def _store_refusal(
        self, request: Request[Principal, Any, Any], claim: KeyClaim, error: AppError
    ) -> Response[bytes] | None:
        """Stores the refusal in its own transaction, since the one that was refused is rolled back. An equal request
        may have come in between: then its answer is the key's, and is returned."""
        body = ErrorAnswer(
            error=ErrorBody(code=error.code, message=error.message, details=error.details or msgspec.UNSET)
        )
        async with transaction():
            if await self._rows.take(claim) is None:
                return await self._answer_to_repeat(request, claim)
            await self._rows.store(claim, error.status, msgspec.json.encode(body))
            await audit.append_refusal(error.code)
        audit.settle()
        return None

    def _insertion(self, caller: Principal, claim: KeyClaim, subject: str, answer: Answer) -> tuple[Statement, ...]:
        body = msgspec.json.encode(answer.body)
        stored = self._rows.insertion(claim, subject, _team_of(caller), answer.status, body)
        draft = current_draft()
        return (stored,) if draft is None else (stored, audit.insertion(draft, subject))


def idempotency_key(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The header's value, bare or as the IETF draft's quoted string."""
    value = connection.headers.get(IDEMPOTENCY_HEADER, "").strip()
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


async def _claim_for(request: Request[Principal, Any, Any]) -> KeyClaim:
    return KeyClaim(
        user_id=request.user.user_id,
        key=idempotency_key(request),
        fingerprint=await _fingerprint(request),
        owner=new_uuid(),
    )


async def _fingerprint(request: Request[Principal, Any, Any]) -> bytes:
    """SHA-256 over method, path, query and body, each in a form in which equal requests are equal."""
    body = canonical(await request.body())
    query = sorted((name, value) for name, value in request.query_params.multi_items())
    # Not of `request.url`, which is put together for it first.
    parts: list[Any] = [request.method, request.scope["path"], query]
    caller = request.user
    if caller.narrowed or _is_about_accounts(request):
        # A user's other key may be for less, or for more: neither is given the answer that this one gets.
        parts.append(caller.key_id)
    if caller.withheld or caller.ended_teams:
        # Nor is somebody who has left a team since, or has a smaller role there.
        parts.append([sorted(caller.withheld), sorted(caller.ended_teams)])
    head = msgspec.json.encode(parts)
    return hashlib.sha256(head + b"\x00" + body).digest()


def _team_of(caller: Principal) -> int | None:
    """The team that the change is about, if the caller is in it: operators needn't be, nor a caller who makes or joins
    a team."""
    draft = current_draft()
    return None if draft is None or draft.team_id is None or caller.role_in(draft.team_id) is None else draft.team_id


def _check_team(request: Request[Principal, Any, Any], team_id: int | None) -> None:
    """Raises `NotAMember` or `InsufficientRole` for a stored answer that the caller wouldn't get now. An answer about
    accounts is repeated even to a caller who has left the team by that very request."""
    if team_id is not None and team_id not in request.user.team_ids and not _is_about_accounts(request):
        raise request.user.refusal(team_id)


def _is_about_accounts(request: Request[Principal, Any, Any]) -> bool:
    """Whether the route manages accounts: its answers may have the text of a key or of an invitation."""
    path: str = request.scope["path"]
    return path.startswith(("/api/v1/api_keys", "/api/v1/teams"))


def _replay(body: bytes) -> bytes:
    """The stored answer, marked as a replay, under this request's own id."""
    answer: dict[str, Any] = msgspec.json.decode(body)
    return msgspec.json.encode({**answer, "request_id": current_request_id(), "idempotency_replay": True})


def _respond(answer: Answer) -> Response[bytes]:
    return _reply(answer.status, msgspec.json.encode(answer.body))


def _reply(status: int, body: bytes) -> Response[bytes]:
    return Response(body, status_code=status, media_type=MediaType.JSON)
