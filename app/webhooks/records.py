"""Rows of endpoints, their deliveries and attempts, as everything above the tables reads and writes them."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.audit.drafts import found
from app.contracts.webhooks import DeliveryStatus
from app.core.secrets import SecretBox, SecretLocation
from app.outbox.event_types import EventType
from app.store.sealed import SealedColumn
from app.store.session import execute, fetch_all, fetch_one, fetch_scalar, fetch_value
from app.webhooks.egress.sender import AttemptResult


class EndpointRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `webhook_endpoints`."""

    id: int
    team_id: int
    url: str
    events: list[str]
    last_success_at: datetime | None
    last_failure_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `webhook_deliveries`."""

    id: int
    webhook_id: str
    endpoint_id: int
    event_id: int | None
    event_type: str
    status: DeliveryStatus
    response_code: int | None
    error_message: str | None
    attempt_count: int
    round: int
    next_attempt_at: datetime | None
    created_at: datetime


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `webhook_attempts`."""

    id: int
    response_code: int | None
    error_message: str | None
    response_body: str | None
    duration_ms: int
    created_at: datetime


MOST_ATTEMPTS = 100
"""Attempts of a delivery that are kept: ten rounds of the whole schedule. Older ones are counted, and forgotten."""
MOST_SIGNING = 4
"""The most secrets in force of an endpoint: each makes every attempt's header longer, and the attempt slower."""
_ENDPOINT = "SELECT id, team_id, url, events, last_success_at, last_failure_at, revoked_at, created_at"
# What waits for an endpoint that hangs is not attempted before the endpoint is probed again.
_DELIVERY = """
SELECT d.id, d.webhook_id, d.endpoint_id, d.event_id, d.event_type, d.status, d.response_code, d.error_message,
       d.attempt_count, d.round, d.created_at,
       CASE WHEN d.waiting THEN greatest(d.next_attempt_at, w.circuit_until) ELSE d.next_attempt_at END
       AS next_attempt_at
FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id
"""
# With filters, a page of each type and status that match, off one index for both: of what hardly ever meets no more is
# read than of what always does. `0 - id` is the order of this index alone, so that no plan takes another one, which may
# have to be walked to its end.
_FILTERED = f"""
{_DELIVERY} WHERE d.id = any(ARRAY(
    SELECT one.id FROM unnest($4::text[]) AS of (type) CROSS JOIN unnest($5::text[]) AS at (status)
    CROSS JOIN LATERAL (
        SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND event_type = of.type AND status = at.status
        AND 0 - id > 0 - coalesce($2::bigint, 9223372036854775807) ORDER BY 0 - id LIMIT $3
    ) one
    ORDER BY one.id DESC LIMIT $3
)) ORDER BY d.id DESC
"""  # noqa: S608 - our own words


def party_of(team: int) -> str:
    """The party to which look-ups of the names of a team's endpoints are charged."""
    return f"team-{team}"


def secret_place(uuid: UUID) -> SecretLocation:
    return SecretLocation("webhook_secrets", "secret_sealed", str(uuid))


SEALED_SECRET = SealedColumn(table="webhook_secrets", column="secret_sealed", row="s.uuid::text")


async def find_endpoint(endpoint: int) -> EndpointRecord | None:
    """The endpoint, of any team, revoked or not."""
    return await fetch_one(EndpointRecord, f"{_ENDPOINT} FROM webhook_endpoints WHERE id = $1", endpoint)


async def find_owned(
    endpoint: int, team_ids: list[int], *, active: bool = False, lock: bool = False
) -> EndpointRecord | None:
    """One of these teams' endpoints; with `active` only if it is not revoked."""
    where = "WHERE id = $1 AND team_id = any($2::bigint[])" + (" AND revoked_at IS NULL" if active else "")
    locking = "FOR NO KEY UPDATE" if lock else ""
    sql = f"{_ENDPOINT} FROM webhook_endpoints {where} {locking}"
    return found(await fetch_one(EndpointRecord, sql, endpoint, team_ids))


async def team_of(endpoint: int, team_ids: list[int]) -> int | None:
    """Which of these teams has the endpoint."""
    return await fetch_value(
        int, "SELECT team_id FROM webhook_endpoints WHERE id = $1 AND team_id = any($2::bigint[])", endpoint, team_ids
    )


async def list_owned(team_ids: list[int], *, after: int | None, limit: int) -> list[EndpointRecord]:
    """These teams' endpoints, revoked ones too, newest first, from the one that follows `after` on."""
    return await fetch_all(
        EndpointRecord,
        f"{_ENDPOINT} FROM webhook_endpoints WHERE team_id = any($1::bigint[])"
        " AND ($2::bigint IS NULL OR id < $2) ORDER BY id DESC LIMIT $3",
        team_ids,
        after,
        limit,
    )


async def find_delivery(delivery: int, endpoint: int, *, lock: bool = False) -> DeliveryRecord | None:
    locking = "FOR NO KEY UPDATE OF d" if lock else ""
    return await fetch_one(
        DeliveryRecord,
        f"{_DELIVERY} WHERE d.id = $1 AND d.endpoint_id = $2 {locking}",
        delivery,
        endpoint,
    )


async def list_deliveries(
    endpoint: int, *, status: DeliveryStatus | None, event_type: EventType | None, after: int | None, limit: int
) -> list[DeliveryRecord]:
    """An endpoint's deliveries, of this status and of this type unless None, newest first, from the one that follows
    `after` on."""
    if status is None and event_type is None:
        return await fetch_all(
            DeliveryRecord,
            f"{_DELIVERY} WHERE d.endpoint_id = $1 AND ($2::bigint IS NULL OR d.id < $2) ORDER BY d.id DESC LIMIT $3",
            endpoint,
            after,
            limit,
        )
    types = list(EventType) if event_type is None else [event_type]
    statuses = list(DeliveryStatus) if status is None else [status]
    return await fetch_all(DeliveryRecord, _FILTERED, endpoint, after, limit, types, statuses)


async def payload_of(delivery: int) -> str:
    """A delivery's payload, as JSON; see `app.webhooks.attempts.body_of` for the bytes that are sent."""
    return await fetch_scalar(
        str,
        "SELECT coalesce(d.payload, e.payload::text) FROM webhook_deliveries d LEFT JOIN events e ON e.id = d.event_id"
        " WHERE d.id = $1",
        delivery,
    )


async def list_attempts(delivery: int) -> list[AttemptRecord]:
    """The delivery's last `MOST_ATTEMPTS` attempts, in the order in which they were made."""
    found = await fetch_all(
        AttemptRecord,
        "SELECT id, response_code, error_message, response_body, duration_ms, created_at"
        " FROM webhook_attempts WHERE delivery_id = $1 ORDER BY id DESC LIMIT $2",
        delivery,
        MOST_ATTEMPTS,
    )
    return found[::-1]


class _SealedSecret(msgspec.Struct, frozen=True):
    uuid: UUID
    secret_sealed: bytes


async def signing_secrets(box: SecretBox, endpoint: int) -> list[str]:
    """The newest `MOST_SIGNING` secrets in force, the newest first. Raises `InvalidSecret`."""
    sealed = await fetch_all(
        _SealedSecret,
        "SELECT uuid, secret_sealed FROM webhook_secrets"
        " WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > now()) ORDER BY id DESC LIMIT $2",
        endpoint,
        MOST_SIGNING,
    )
    return [box.open(one.secret_sealed, secret_place(one.uuid)) for one in sealed]


async def end_oldest_secrets(endpoint: int) -> None:
    """Ends all secrets in force but the newest `MOST_SIGNING`, in the caller's transaction, with the endpoint's row
    locked."""
    await execute(
        """
        UPDATE webhook_secrets SET expires_at = now() WHERE id IN (
            SELECT id FROM webhook_secrets WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > now())
            ORDER BY id DESC OFFSET $2
        )
        """,
        endpoint,
        MOST_SIGNING,
    )


async def insert_ping(webhook_id: str, endpoint: int, payload: str, answer: AttemptResult) -> int:
    """Writes a ping that was sent, with its one attempt. Call it inside a transaction."""
    delivery = await fetch_scalar(
        int,
        """
        INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, status, response_code,
                                        error_message, attempt_count, spent, finished_at)
        VALUES ($1, $2, 'ping', $3, $4, $5, $6, 1, 1, now()) RETURNING id
        """,
        webhook_id,
        endpoint,
        payload,
        DeliveryStatus.DELIVERED if answer.delivered else DeliveryStatus.FAILED,
        answer.code,
        answer.error,
    )
    await execute(INSERT_ATTEMPT, delivery, answer.code, answer.error, answer.body, round(answer.duration * 1000))
    return delivery


INSERT_ATTEMPT = """
INSERT INTO webhook_attempts (delivery_id, response_code, error_message, response_body, duration_ms)
VALUES ($1, $2, $3, $4, $5)
"""


async def delete_old_deliveries(most: int, age: timedelta) -> int:
    """Deletes deliveries that ended longer ago than `age`, with their attempts. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM webhook_deliveries WHERE id IN (
            SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND finished_at < now() - $2::interval
            ORDER BY finished_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        age,
    )


async def delete_replaced_secrets(most: int, _age: timedelta) -> int:
    """Deletes secrets that expired more than two days ago. A client that lost an answer, and with it a new secret, asks
    for it within the lifetime of its idempotency key: they stay for at least that long. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM webhook_secrets WHERE id IN (
            SELECT id FROM webhook_secrets WHERE expires_at < now() - interval '2 days'
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
    )
