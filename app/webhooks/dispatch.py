"""From committed events to deliveries: one for each endpoint that wants it, and the workflow that makes its first
attempt. What can't be sent now has no workflow: it waits for its endpoint."""

import msgspec

from app.contracts.queues import delivery_workflow_id
from app.contracts.webhooks import DeliverWebhook, DeliverWebhookInput
from app.outbox.events import TakenEvent, take_undispatched
from app.outbox.workflow_starts import NORMAL, PendingStart, StartRequest, request_starts, without_markup
from app.store.session import fetch_all, transaction
from app.webhooks import waiting
from app.webhooks.circuit import BREAKS_AT


class _Delivery(msgspec.Struct, frozen=True):
    id: int
    endpoint_id: int
    event_id: int
    waiting: bool


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """So many events were taken off the outbox, and these workflows are to be started for them."""

    events: int
    starts: list[PendingStart]


async def dispatch(limit: int, *, first_wait: float) -> Batch:
    """One transaction: an event is dispatched when its deliveries and the pending starts of their workflows are
    written. `first_wait` is the schedule's first entry, in seconds, a fifth more or less. Any number of processes may
    do so side by side."""
    async with transaction():
        events = {event.id: event for event in await take_undispatched(limit)}
        if not events:
            return Batch(events=0, starts=[])
        deliveries = await fetch_all(_Delivery, _INSERT, list(events), first_wait, BREAKS_AT)
        if later := {delivery.endpoint_id for delivery in deliveries if delivery.waiting}:
            await waiting.announce(sorted(later), 0.8 * first_wait)
        requests = [_start_request(one, events[one.event_id]) for one in deliveries if not one.waiting]
        starts = await request_starts(DeliverWebhook, requests, priority=NORMAL) if requests else []
    return Batch(events=len(events), starts=starts)


def _start_request(delivery: _Delivery, event: TakenEvent) -> StartRequest:
    request = DeliverWebhookInput(
        delivery=delivery.id,
        endpoint=delivery.endpoint_id,
        team_id=event.team_id,
        event=event.type,
        database=event.database,
    )
    return StartRequest(
        workflow_id=delivery_workflow_id(event.uuid, delivery.endpoint_id),
        request=request,
        summary=summary_of(request, team=event.team, database=event.database_name),
    )


def summary_of(request: DeliverWebhookInput, *, team: str, database: str | None) -> str:
    """One line for Temporal's list, with what the team and the database are called now."""
    about = f' about database "{without_markup(database)}", {request.database},' if database is not None else ""
    return f'{request.event}{about} to endpoint {request.endpoint} of team "{without_markup(team)}", {request.team_id}'


_INSERT = """
INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_id, event_type, next_attempt_at, waiting)
SELECT 'msg_' || replace(e.uuid::text, '-', '') || '_' || w.id, w.id, e.id, e.type,
       now() + make_interval(secs => $2 * (0.8 + 0.4 * random())), $2 > 0 OR w.slow_failures >= $3
FROM events e JOIN webhook_endpoints w ON w.team_id = e.team_id
WHERE e.id = any($1::bigint[]) AND w.revoked_at IS NULL AND (w.events = '{}' OR e.type = any(w.events))
ORDER BY e.id, w.id
ON CONFLICT (event_id, endpoint_id) DO NOTHING
RETURNING id, endpoint_id, event_id, waiting
"""
