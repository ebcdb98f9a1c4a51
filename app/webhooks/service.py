"""What clients do to webhook endpoints. Every function that changes something belongs in the request's transaction."""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec
from msgspec import UnsetType

from app.audit.drafts import note
from app.audit.events import audited
from app.auth.principal import Principal
from app.auth.teams import get_team
from app.contracts.webhooks import DeliveryStatus
from app.core.errors import EndpointLimitReached, InvalidField, NotFound, require_found
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.outbox.event_types import EventType
from app.outbox.events import notify_dispatcher
from app.outbox.workflow_starts import Accepted
from app.store.session import execute, fetch_one, fetch_scalar
from app.webhooks import records, waiting
from app.webhooks.attempts import body_of
from app.webhooks.egress.guard import AddressRefused, Guard, on_behalf_of
from app.webhooks.egress.targets import UnusableURL, parse_target
from app.webhooks.records import AttemptRecord, DeliveryRecord, EndpointRecord
from app.webhooks.schemas import ChangeEndpoint, CreateEndpoint
from app.webhooks.signing import new_secret

ENDPOINT, DELIVERY = "webhook endpoint", "webhook delivery"


async def url_fault(guard: Guard, principal: Principal, url: str, *, timeout: float) -> str | None:
    """Why this URL can't be an endpoint's, in a sentence. A host that can't be resolved now is no fault: it is checked
    again whenever something is sent. `timeout` is the most seconds that the look-up may take."""
    try:
        with on_behalf_of(f"user-{principal.user_id}"):
            async with asyncio.timeout(timeout):
                await guard.addresses(parse_target(url).host)
    except (UnusableURL, AddressRefused) as fault:
        return str(fault)
    except (OSError, UnicodeError):
        return None
    return None


async def create(
    box: SecretBox, principal: Principal, request: CreateEndpoint, *, fault: str | None, most: int
) -> Accepted:
    """`fault` is what is wrong with the URL, `most` the number of active endpoints that a team may have. The subject is
    the secret's row. Raises `InvalidField`, `InsufficientRole`, `NotAMember` or `EndpointLimitReached`."""
    team = _team_for_create(principal, request)
    if fault is not None:
        raise InvalidField("url", fault)
    events = _known(request.events)
    await _check_room(team, most)
    endpoint = await fetch_scalar(
        int,
        "INSERT INTO webhook_endpoints (team_id, created_by_id, url, events) VALUES ($1, $2, $3, $4) RETURNING id",
        team,
        principal.user_id,
        request.url,
        events,
    )
    note(subject=("webhook_endpoint", endpoint), changes={"url": (None, request.url)})
    return Accepted(subject=str(await _add_secret(box, endpoint)), settled=True)


async def change(principal: Principal, endpoint: int, request: ChangeEndpoint, *, fault: str | None) -> Accepted:
    """`fault` is what is wrong with the new URL. Attempts that are still to come go to the new URL too. Raises
    `NotFound`, also for one that is revoked, and `InvalidField`."""
    record = require_found(await records.find_owned(endpoint, principal.team_ids, active=True, lock=True), ENDPOINT)
    if fault is not None:
        raise InvalidField("url", fault)
    url = record.url if isinstance(request.url, UnsetType) else request.url
    events = record.events if isinstance(request.events, UnsetType) else _known(request.events)
    await execute("UPDATE webhook_endpoints SET url = $2, events = $3 WHERE id = $1", record.id, url, events)
    changes = {"url": (record.url, url), "events": (record.events, events)}
    note(team_id=record.team_id, changes={name: two for name, two in changes.items() if two[0] != two[1]})
    return Accepted(subject=str(endpoint), settled=True)


async def get(principal: Principal, endpoint: int, *, active: bool = False) -> EndpointRecord:
    """Raises `NotFound`."""
    return require_found(await records.find_owned(endpoint, principal.team_ids, active=active), ENDPOINT)


async def list_page(
    principal: Principal, *, starting_after: int | None, limit: int
) -> tuple[list[EndpointRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is unknown or not the
    caller's."""
    if starting_after is not None and await records.find_owned(starting_after, principal.team_ids) is None:
        raise InvalidField("starting_after", "This is not the id of a webhook endpoint of yours.")
    page = await records.list_owned(principal.team_ids, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def revoke(principal: Principal, endpoint: int) -> Accepted:
    """Raises `NotFound`, also for one that is revoked."""
    record = require_found(await records.find_owned(endpoint, principal.team_ids, active=True, lock=True), ENDPOINT)
    # Nothing more is delivered to it, what was still to be sent included. What is left of a long backlog is due at
    # once, whatever its receiver did, so that a worker ends it.
    await waiting.end_revoked(record.id)
    await execute(
        """
        UPDATE webhook_endpoints SET revoked_at = now(), slow_failures = 0, circuit_until = NULL, next_attempt_at = (
            SELECT now() FROM webhook_deliveries d WHERE d.endpoint_id = $1 AND d.waiting
            ORDER BY d.next_attempt_at LIMIT 1
        )
        WHERE id = $1
        """,
        record.id,
    )
    return Accepted(subject=str(endpoint), settled=True)


async def rotate_secret(box: SecretBox, principal: Principal, endpoint: int, overlap: timedelta) -> Accepted:
    """Gives the endpoint a new secret; the old one signs beside it for the time of `overlap`, unless
    `records.MOST_SIGNING` newer ones do. The subject is the new secret's row. Raises `NotFound`."""
    require_found(await records.find_owned(endpoint, principal.team_ids, active=True, lock=True), ENDPOINT)
    await execute(
        "UPDATE webhook_secrets SET expires_at = now() + $2::interval WHERE endpoint_id = $1 AND expires_at IS NULL",
        endpoint,
        overlap,
    )
    subject = await _add_secret(box, endpoint)
    await records.end_oldest_secrets(endpoint)
    return Accepted(subject=str(subject), settled=True)


class _Secret(msgspec.Struct, frozen=True):
    endpoint_id: int
    secret_sealed: bytes


async def with_secret(box: SecretBox, subject: str) -> tuple[EndpointRecord, str]:
    """The endpoint and the secret that this request made. Raises `NotFound` when it has expired since."""
    secret = await fetch_one(
        _Secret, "SELECT endpoint_id, secret_sealed FROM webhook_secrets WHERE uuid = $1", UUID(subject)
    )
    record = await records.find_endpoint(secret.endpoint_id) if secret is not None else None
    if secret is None or record is None:
        raise NotFound(ENDPOINT)
    return record, box.open(secret.secret_sealed, records.secret_place(UUID(subject)))


async def list_deliveries(
    principal: Principal,
    endpoint: int,
    *,
    status: DeliveryStatus | None,
    event_type: EventType | None,
    starting_after: int | None,
    limit: int,
) -> tuple[list[DeliveryRecord], bool]:
    """A page of the endpoint's deliveries of this status and type, newest first, and whether more follows. Raises
    `NotFound`, and `InvalidField` for a cursor that is none of this endpoint's deliveries."""
    await get(principal, endpoint)
    if starting_after is not None and await records.find_delivery(starting_after, endpoint) is None:
        raise InvalidField("starting_after", "This is not the id of a delivery of this endpoint.")
    page = await records.list_deliveries(
        endpoint, status=status, event_type=event_type, after=starting_after, limit=limit + 1
    )
    return page[:limit], len(page) > limit


async def get_delivery(
    principal: Principal, endpoint: int, delivery: int
) -> tuple[DeliveryRecord, list[AttemptRecord], str]:
    """A delivery with its attempts, and the body that each sends. Raises `NotFound`."""
    await get(principal, endpoint)
    record = require_found(await records.find_delivery(delivery, endpoint), DELIVERY)
    body = body_of(await records.payload_of(delivery)).decode()
    return record, await records.list_attempts(delivery), body


async def send_again(principal: Principal, endpoint: int, delivery: int) -> DeliveryRecord:
    """Begins a new round of the whole schedule immediately, in a transaction of its own. Raises `NotFound`, also for a
    revoked endpoint."""
    async with audited():
        require_found(await records.find_owned(endpoint, principal.team_ids, active=True, lock=True), ENDPOINT)
        require_found(await records.find_delivery(delivery, endpoint, lock=True), DELIVERY)
        await waiting.announce([endpoint], 0)
        await execute(
            """
            UPDATE webhook_deliveries SET round = round + 1, spent = 0, status = 'pending', waiting = true,
                   round_started_at = now(), next_attempt_at = now(), finished_at = NULL
            WHERE id = $1
            """,
            delivery,
        )
        await notify_dispatcher()
        again = await records.find_delivery(delivery, endpoint)
        assert again is not None, "its row is locked"
        return again


async def _add_secret(box: SecretBox, endpoint: int) -> UUID:
    uuid = new_uuid()
    await execute(
        "INSERT INTO webhook_secrets (uuid, endpoint_id, secret_sealed) VALUES ($1, $2, $3)",
        uuid,
        endpoint,
        box.seal(new_secret(), records.secret_place(uuid)),
    )
    return uuid


async def _check_room(team: int, most: int) -> None:
    # Locked, so that two concurrent creates don't both take the last place.
    await get_team(team, lock=True, live=True)
    count = "SELECT count(*) FROM webhook_endpoints WHERE team_id = $1 AND revoked_at IS NULL"
    if await fetch_scalar(int, count, team) >= most:
        raise EndpointLimitReached(most)


def _known(names: list[str]) -> list[str]:
    """The names of the events, each once."""
    for name in names:
        if name not in set(EventType):
            raise InvalidField("events", f"There is no event {name[:100]!r}. There are {', '.join(EventType)}.")
    return list(dict.fromkeys(names))


def _team_for_create(principal: Principal, request: CreateEndpoint) -> int:
    """The team that is to own the endpoint. Raises `InvalidField`, `InsufficientRole` or `NotAMember`."""
    team = principal.owning_team(request.team_id if isinstance(request.team_id, int) else None, "endpoint")
    note(team_id=team)
    return team
