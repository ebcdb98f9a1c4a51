"""The retry schedule over its three days: real attempts at a real receiver, on a Temporal server that skips time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest_asyncio
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from activities.webhooks import WebhookActivitiesOverHTTP
from app.contracts.queues import WEBHOOK_QUEUE
from app.core.secrets import SecretBox, new_key_setting
from app.core.settings import Settings
from app.dispatch.starts import start
from app.egress.sender import Sender
from app.store.session import fetch
from app.webhooks.attempts import Attempts
from app.webhooks.dispatch import dispatch
from tests.support.in_process import lone_api
from tests.support.receiver import Receiver, answer
from tests.support.time_skipping import time_skipping
from tests.support.webhooks import ALLOWED, emit, subscribed
from workers.runner import activity_methods, sandbox
from workers.search_attributes import register_search_attributes
from workflows.served import WEBHOOK_WORKFLOWS

SCHEDULE = Settings().webhook_retry_schedule
PUNCTUAL = 5.0
"""Seconds, of timers and of the attempts themselves."""


@pytest_asyncio.fixture
async def skipping() -> AsyncIterator[Client]:
    async with time_skipping() as client:
        await register_search_attributes(client)
        yield client


async def test_ten_attempts_over_three_days(skipping: Client, control_dsn: str, receiving: Receiver) -> None:
    settings = Settings(
        secret_keys=new_key_setting(), webhook_allow_cidrs=(ALLOWED,), webhook_ca_file=receiving.ca_file
    )
    receiving.replies["/hook"] = answer(500)
    known: dict[str, Any] = {
        "secret_keys": settings.secret_keys,
        "webhook_allow_cidrs": settings.webhook_allow_cidrs,
        "webhook_ca_file": settings.webhook_ca_file,
    }
    sender = Sender(settings)
    async with lone_api(control_dsn, **known) as api:
        caller = await api.caller()
        await subscribed(caller, receiving.url("/hook"))
        await emit(caller)
        (promised,) = (await dispatch(1, first_wait=SCHEDULE[0])).starts
        attempts = Attempts(SecretBox.from_setting(settings.secret_keys), sender, settings)
        async with Worker(
            skipping,
            task_queue=WEBHOOK_QUEUE,
            workflows=WEBHOOK_WORKFLOWS,
            activities=activity_methods(WebhookActivitiesOverHTTP(attempts)),
            workflow_runner=sandbox(),
            build_id="schedule",
        ):
            await start(skipping, promised)
            handle = skipping.get_workflow_handle(promised.workflow_id)
            await handle.result()
        moments = await attempt_moments(handle)
        (row,) = await fetch("SELECT status, attempt_count FROM webhook_deliveries")
    await sender.close()
    assert (row["status"], row["attempt_count"]) == ("failed", 10)
    assert len({got.headers["webhook-id"] for got in receiving.received}) == 1
    assert len(receiving.received) == len(moments) == len(SCHEDULE) == 10
    for earlier, later, wait in zip(moments, moments[1:], SCHEDULE[1:], strict=False):
        assert 0.8 * wait - 1 <= (later - earlier).total_seconds() <= 1.2 * wait + PUNCTUAL
    whole = (moments[-1] - moments[0]).total_seconds()
    assert 0.8 * sum(SCHEDULE) <= whole <= 1.2 * sum(SCHEDULE) + 10 * PUNCTUAL


async def attempt_moments(handle: WorkflowHandle[Any, Any]) -> list[datetime]:
    """When each attempt was begun, by the server's clock: the first within the workflow's task, the others as steps of
    their own."""
    events = (await handle.fetch_history()).events
    begun = [
        event.event_time.ToDatetime(tzinfo=UTC)
        for event in events
        if event.HasField("marker_recorded_event_attributes")
        or event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert begun == sorted(begun)
    return begun
