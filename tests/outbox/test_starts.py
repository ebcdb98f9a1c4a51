"""Pending starts of workflows: written with the change, started once, and safe to start again."""

import asyncio
import contextlib
from typing import Any
from uuid import UUID

import asyncpg
import pytest_asyncio
from temporalio.client import Client

from app.contracts.queues import (
    DATABASE_ATTRIBUTE,
    ENGINE_ATTRIBUTE,
    LABELS_ATTRIBUTE,
    REGION_ATTRIBUTE,
    TEAM_ATTRIBUTE,
)
from app.core.temporal import connect
from app.local.ports import LOOPBACK
from app.local.temporal import TemporalService
from app.outbox.starting import Starter, start
from app.outbox.workflow_starts import INTERACTIVE, UPKEEP, PendingStart, claim_due, record_failure
from app.store.session import fetch, transaction
from tests.support.answers import data_of
from tests.support.in_process import LoneApi
from tests.support.pending_starts import make_due, pending_ids, request_pending
from tests.support.ports import free_port
from tests.support.waiting import LIMIT_SECONDS
from workers.search_attributes import register_search_attributes


@pytest_asyncio.fixture(scope="module")
async def client(temporal_server: TemporalService) -> Client:
    made = await connect(temporal_server.address, "default")
    await asyncio.gather(*(register_search_attributes(made) for _ in range(3)))
    return made


async def test_a_pending_start_goes_with_its_transaction(own_store: None) -> None:
    with contextlib.suppress(LookupError):
        async with transaction():
            await request_pending()
            raise LookupError
    assert await pending_ids() == []


async def test_one_pending_start_for_one_workflow(own_store: None) -> None:
    first, second = await request_pending(workflow_id="one"), await request_pending(workflow_id="one")
    assert first.id == second.id
    assert await pending_ids() == ["one"]


async def test_what_has_started_is_pending_no_more_and_can_be_found(own_store: None, client: Client) -> None:
    pending = await request_pending()
    await start(client, pending)
    assert await pending_ids() == []
    description = await client.get_workflow_handle(pending.workflow_id).describe()
    assert description.workflow_type == "ApplyLimits"
    assert description.task_queue == "control"
    database = pending.workflow_id.removeprefix("test/")
    attributes = description.typed_search_attributes
    assert attributes[DATABASE_ATTRIBUTE] == database
    assert (attributes[TEAM_ATTRIBUTE], attributes[ENGINE_ATTRIBUTE]) == (7, "postgres")
    assert attributes[REGION_ATTRIBUTE] == "nowhere-9"
    assert database in (await description.static_summary() or "")
    priority = description.raw_description.workflow_execution_info.priority
    assert (priority.priority_key, priority.fairness_key) == (INTERACTIVE, "team-7")


async def test_a_workflow_is_found_by_its_databases_labels(lone: LoneApi, client: Client) -> None:
    caller = await lone.caller()
    few = {"env": "production", "owner": "a: b"}
    many = {"00": "x" * 253, "01": "é" * 100} | {f"{number:02}": "x" * 250 for number in range(2, 32)}
    found = []
    for labels in (few, many):
        made = data_of(await caller.create(labels=labels), 202)
        pending = await request_pending(database=UUID(made["uuid"]))
        await make_due()
        # As the relay reads it.
        await start(client, next(one for one in await claim_due() if one.id == pending.id))
        description = await client.get_workflow_handle(pending.workflow_id).describe()
        found.append(description.typed_search_attributes[LABELS_ATTRIBUTE])
    assert found[0] == ["env:production", "owner:a: b"]
    # No more than Temporal takes: with one more it would refuse the workflow.
    assert found[1] == [f"01:{'é' * 100}", *(f"{number:02}:{'x' * 250}" for number in range(2, 7))]


async def test_starting_it_again_is_harmless(own_store: None, client: Client) -> None:
    pending = await request_pending()
    await start(client, pending)
    first = await client.get_workflow_handle(pending.workflow_id).describe()
    await start(client, pending)
    assert (await client.get_workflow_handle(pending.workflow_id).describe()).run_id == first.run_id


async def test_what_has_ended_is_not_begun_again(own_store: None, client: Client) -> None:
    pending = await request_pending()
    await start(client, pending)
    handle = client.get_workflow_handle(pending.workflow_id)
    first = await handle.describe()
    with contextlib.suppress(Exception):  # a worker of another test may have ended it
        await handle.terminate()
    await request_start_again(pending)
    await start(client, pending)
    assert await pending_ids() == []
    assert (await handle.describe()).run_id == first.run_id


async def request_start_again(pending: PendingStart) -> None:
    await fetch(
        "INSERT INTO workflow_starts (id, workflow, workflow_id, input, priority, next_attempt_at)"
        " VALUES ($1, $2, $3, $4::jsonb, 1, now())",
        pending.id,
        pending.workflow,
        pending.workflow_id,
        pending.input,
    )


async def test_a_pending_start_is_left_to_its_writer_at_first(own_store: None) -> None:
    # In one transaction it is always the same moment.
    async with transaction():
        await request_pending()
        assert await claim_due() == []
        (row,) = await fetch("SELECT extract(epoch FROM next_attempt_at - now()) AS wait FROM workflow_starts")
    assert 0 < row["wait"] <= 2
    await make_due()
    assert [one.workflow for one in await claim_due()] == ["ApplyLimits"]


async def test_two_relays_share_the_work(own_store: None, control_dsn: str) -> None:
    made = [(await request_pending()).id for _ in range(6)]
    await make_due()
    other: Any = await asyncpg.connect(control_dsn)
    try:
        async with other.transaction(), asyncio.timeout(LIMIT_SECONDS):
            # As another relay that is about to claim these: they are left to it, and not waited for.
            await other.execute("SELECT 1 FROM workflow_starts ORDER BY id LIMIT 2 FOR UPDATE")
            async with transaction():
                assert {pending.id for pending in await claim_due()} == set(made[2:])
                # However long the rest takes, they don't become due again.
                await fetch(
                    "UPDATE workflow_starts SET next_attempt_at = next_attempt_at + interval '1 hour'"
                    " WHERE attempts > 0"
                )
    finally:
        await other.close()
    async with transaction():
        assert {pending.id for pending in await claim_due()} == set(made[:2])
        assert await claim_due() == []


async def test_the_urgent_comes_first(own_store: None) -> None:
    for priority in (UPKEEP, INTERACTIVE):
        await request_pending(priority=priority)
    await make_due()
    assert [one.priority for one in await claim_due(limit=1)] == [INTERACTIVE]


async def test_attempts_are_spaced_ever_wider(own_store: None) -> None:
    await request_pending()
    waits = []
    for _ in range(5):
        await make_due()
        async with transaction():
            await claim_due()
            (row,) = await fetch(
                "SELECT extract(epoch FROM next_attempt_at - now())::float AS wait FROM workflow_starts"
            )
        waits.append(row["wait"])
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]


async def test_a_failed_start_waits_its_turn(own_store: None) -> None:
    await request_pending()
    await make_due()
    async with transaction():
        (pending,) = await claim_due()
        await record_failure(pending, "x" * 1000)
        assert await claim_due() == []
    (row,) = await fetch("SELECT last_error, attempts FROM workflow_starts")
    assert (row["last_error"], row["attempts"]) == ("x" * 500, 1)


async def test_the_starter_leaves_what_it_cannot_start_to_the_relay(own_store: None) -> None:
    away = Starter(await connect(f"{LOOPBACK}:{free_port()}", "default", lazy=True))
    pending = await request_pending()
    away.start_soon(pending)
    await away.close()
    (row,) = await fetch("SELECT last_error FROM workflow_starts")
    assert row["last_error"]
    assert [one.id for one in await claim_due()] == [pending.id]


async def test_the_starter_starts(own_store: None, client: Client) -> None:
    starter = Starter(client)
    pending = await request_pending()
    starter.start_soon(pending)
    await starter.close()
    assert await pending_ids() == []
