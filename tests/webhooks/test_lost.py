"""Deliveries that nothing would send are taken up: those of an earlier version's workers, and those whose endpoint
doesn't say when it is due."""

from datetime import timedelta

from app.contracts.queues import WEBHOOK_QUEUE
from app.contracts.webhooks import DeliverWebhook, DeliverWebhookInput
from app.store.session import fetch
from app.upkeep.reconcile.service import recover_deliveries
from app.webhooks.dispatch import dispatch
from tests.support.receiver import Receiver
from tests.support.waiting import until
from tests.support.webhooks import WEBHOOKS, Delivering, emit, path, subscribed

NOW, LONG = timedelta(0), timedelta(minutes=5)


async def begun_before(running: Delivering, target: Receiver, where: str) -> tuple[int, int, int]:
    """An endpoint, its team, and a delivery as version 0.1.0 left it to its workflow."""
    caller = await running.api.caller()
    endpoint, _ = await subscribed(caller, target.url(where))
    async with running.frozen(WEBHOOKS):
        await emit(caller)
        await dispatch(100, first_wait=0)
        await fetch("UPDATE webhook_endpoints SET next_attempt_at = NULL WHERE id = $1", endpoint)
        (row,) = await fetch(
            "UPDATE webhook_deliveries SET waiting = false WHERE endpoint_id = $1 RETURNING id", endpoint
        )
    return endpoint, caller.team_id, row["id"]


async def arrive(target: Receiver, where: str) -> None:
    async def arrived() -> bool:
        return len(target.of(where)) == 1

    await until(arrived)


async def test_a_delivery_whose_workflow_is_gone(running: Delivering, target: Receiver) -> None:
    where = path()
    endpoint, _, delivery = await begun_before(running, target, where)
    assert await recover_deliveries(LONG) == [], "it has not been so for long"
    recovered = await recover_deliveries(NOW)
    assert recovered == [f"Took up delivery {delivery} to endpoint {endpoint}: nothing was at it any more."]
    assert await recover_deliveries(NOW) == []
    await arrive(target, where)


async def test_a_workflow_of_an_earlier_version_hands_its_delivery_over(running: Delivering, target: Receiver) -> None:
    """As one that was open during the upgrade, or that an API of that version has begun since."""
    where = path()
    endpoint, team, delivery = await begun_before(running, target, where)
    request = DeliverWebhookInput(delivery=delivery, endpoint=endpoint, team_id=team, event="database.provisioned")
    client = await running.temporal()
    await client.execute_workflow(
        DeliverWebhook.run, request, id=f"deliver-webhook/{delivery}", task_queue=WEBHOOK_QUEUE
    )
    await arrive(target, where)


async def test_an_endpoint_that_nothing_wakes(running: Delivering, target: Receiver) -> None:
    """As no code of ours leaves it."""
    caller, where = await running.api.caller(), path()
    endpoint, _ = await subscribed(caller, target.url(where))
    await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, next_attempt_at, waiting)"
        " VALUES ('msg_forgotten', $1, 'ping', $2, now(), true)",
        endpoint,
        '{"event": "ping", "timestamp": "", "data": {}}',
    )
    assert f"Woke endpoint {endpoint}: nothing said when." in await recover_deliveries()
    await arrive(target, where)
