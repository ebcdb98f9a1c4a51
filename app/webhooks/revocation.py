"""The end of an endpoint: nothing more is delivered to it, what was still to be sent included."""

from uuid import UUID

import msgspec

from app.contracts.queues import delivery_workflow_id, end_deliveries_workflow_id
from app.contracts.webhooks import DeliveriesPage, EndDeliveries, EndDeliveriesInput, WaitingDeliveries
from app.dispatch.starts import UPKEEP, WorkflowStart, request_start
from app.store.session import fetch, fetch_all
from app.webhooks.attempts import REVOKED
from app.webhooks.records import EndpointRecord

_PAGE = 500


class _Ended(msgspec.Struct, frozen=True):
    id: int
    round: int
    event: UUID | None
    webhook_id: str


async def revoke(endpoint: EndpointRecord) -> WorkflowStart | None:
    """Ends it and what is pending for it, in the caller's transaction, with the row locked. Returns the workflow that
    wakes the deliveries that still wait, if there are such."""
    await fetch("UPDATE webhook_endpoints SET revoked_at = now() WHERE id = $1", endpoint.id)
    ended = await fetch(
        """
        UPDATE webhook_deliveries SET status = 'failed', error_message = $2, finished_at = now(), next_attempt_at = NULL
        WHERE endpoint_id = $1 AND status = 'pending' RETURNING id
        """,
        endpoint.id,
        REVOKED,
    )
    if not ended:
        return None
    return await request_start(
        EndDeliveries,
        end_deliveries_workflow_id(endpoint.id),
        EndDeliveriesInput(endpoint=endpoint.id, team_id=endpoint.team_id),
        priority=UPKEEP,
        summary=f"{len(ended)} deliveries that waited for endpoint {endpoint.id}, which is revoked",
    )


async def list_ended(page: DeliveriesPage) -> WaitingDeliveries:
    """The workflows of deliveries that the revocation ended, page by page."""
    rows = await fetch_all(
        _Ended,
        """
        SELECT d.id, d.round, e.uuid AS event, d.webhook_id
        FROM webhook_deliveries d LEFT JOIN events e ON e.id = d.event_id
        WHERE d.endpoint_id = $1 AND d.id > $2 AND d.status = 'failed' AND d.error_message = $3
        ORDER BY d.id LIMIT $4
        """,
        page.endpoint,
        page.after,
        REVOKED,
        _PAGE,
    )
    return WaitingDeliveries(
        last=rows[-1].id if len(rows) == _PAGE else None,
        workflow_ids=[delivery_workflow_id(row.event or row.webhook_id, page.endpoint, row.round) for row in rows],
    )
