"""Wakes what still waits to be sent to an endpoint that was revoked."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import FailureError

from app.contracts.webhooks import DeliveriesPage, DeliveryRecords, EndDeliveries, EndDeliveriesInput
from workflows import policies


@workflow.defn(name="EndDeliveries")
class EndDeliveriesWorkflow(EndDeliveries):
    """For order alone: their records say already that they failed, and an attempt would find that out by itself."""

    @workflow.run
    async def run(self, request: EndDeliveriesInput) -> None:
        after, woken = request.after, request.woken
        while True:
            page = await workflow.execute_activity_method(
                DeliveryRecords.list_ended_deliveries,
                DeliveriesPage(endpoint=request.endpoint, after=after),
                **policies.control("list the deliveries that the revocation ended"),
            )
            await asyncio.gather(*map(_wake, page.workflow_ids))
            woken += len(page.workflow_ids)
            workflow.set_current_details(f"{woken} deliveries were told that nobody wants them any more.")
            if page.last is None:
                return
            after = page.last
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(
                    EndDeliveriesInput(endpoint=request.endpoint, team_id=request.team_id, after=after, woken=woken)
                )


async def _wake(workflow_id: str) -> None:
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal("end")
    except FailureError:
        workflow.logger.info("a delivery has ended by itself")
