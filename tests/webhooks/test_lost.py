"""Deliveries whose workflow is gone are taken up; those whose workflow is there are left to it."""

from datetime import timedelta

from app.outbox.workflow_starts import start_all
from app.store.session import fetch
from app.upkeep.reconcile.lost_deliveries import recover_deliveries
from app.webhooks.dispatch import dispatch
from tests.support.receiver import Receiver
from tests.support.waiting import until
from tests.support.webhooks import WEBHOOKS, Delivering, emit, path, subscribed

NOW, LONG = timedelta(0), timedelta(minutes=5)


async def test_a_delivery_whose_workflow_was_terminated(running: Delivering, target: Receiver) -> None:
    caller, where, client = await running.api.caller(), path(), await running.temporal()
    await subscribed(caller, target.url(where))
    await running.kill(WEBHOOKS)
    try:
        await emit(caller)
        starts = (await dispatch(100, first_wait=0)).starts
        assert await recover_deliveries(client, NOW) == [], "its workflow is promised"
        assert await start_all(client, starts) == []
        handle = client.get_workflow_handle(starts[0].workflow_id)
        running_ = f"WorkflowId = '{handle.id}' AND ExecutionStatus = 'Running'"

        async def listed() -> bool:
            return bool([one async for one in client.list_workflows(running_)])

        await until(listed)
        assert await recover_deliveries(client, NOW) == [], "its workflow is open"
        await handle.terminate()

        async def closed() -> bool:
            return not await listed()

        await until(closed)
        assert await recover_deliveries(client, LONG) == [], "it has not been so for long"
        (told,) = await recover_deliveries(client, NOW)
        assert told.startswith("Took up delivery")
        assert await recover_deliveries(client, NOW) == []
    finally:
        await running.start(WEBHOOKS)

    async def arrived() -> bool:
        return len(target.of(where)) == 1

    await until(arrived)


async def test_an_endpoint_that_nothing_wakes(running: Delivering, target: Receiver) -> None:
    """As no code of ours leaves it."""
    caller, where, client = await running.api.caller(), path(), await running.temporal()
    endpoint, _ = await subscribed(caller, target.url(where))
    await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, next_attempt_at, waiting)"
        " VALUES ('msg_forgotten', $1, 'ping', $2, now(), true)",
        endpoint,
        '{"event": "ping", "timestamp": "", "data": {}}',
    )
    assert f"Woke endpoint {endpoint}: nothing said when." in await recover_deliveries(client)

    async def arrived() -> bool:
        return len(target.of(where)) == 1

    await until(arrived)
