"""Recovering deliveries whose first attempt was lost: their workflow was terminated, or Temporal lost it.

They become waiting rows, and a webhook worker makes the attempt.
"""

from datetime import timedelta

from temporalio.client import Client

from app.contracts.queues import delivery_workflow_id
from app.upkeep.reconcile.restarts import RESTART_AFTER
from app.webhooks import waiting
from app.webhooks.waiting import LostDelivery

_MAX = 200
"""The maximum in one run."""


async def recover_deliveries(client: Client, patience: timedelta = RESTART_AFTER) -> list[str]:
    """Takes over deliveries that have been due for longer than `patience` and have no open workflow. Returns a
    sentence for each. Raises what Temporal's client raises when it can't be reached."""
    forgotten = [f"Woke endpoint {endpoint}: nothing said when." for endpoint in await waiting.wake_forgotten()]
    overdue = {_workflow_id(one): one for one in await waiting.list_lost(patience, _MAX)}
    if not overdue:
        return forgotten
    named = ", ".join(f"'{workflow_id}'" for workflow_id in overdue)
    query = f"ExecutionStatus = 'Running' AND WorkflowId IN ({named})"
    at_work = {one.id async for one in client.list_workflows(query)}
    lost = [one for workflow_id, one in overdue.items() if workflow_id not in at_work]
    if lost:
        await waiting.take_over([one.id for one in lost])
    return forgotten + [
        f"Took up delivery {one.id} to endpoint {one.endpoint_id}: nothing was at it any more." for one in lost
    ]


def _workflow_id(lost: LostDelivery) -> str:
    return delivery_workflow_id(lost.event or lost.webhook_id, lost.endpoint_id, lost.round)
