"""Attempts that begin before their workflow: who gets them, what they report, and how they end."""

import asyncio
from contextlib import nullcontext
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from app.core.clock import utc_now
from app.operations import attempt
from app.operations.attempt import Attempt
from app.provisioning.first_attempts import FirstAttempt, FirstAttempts

_WORKFLOW = "provision-database/one"


class _Work:
    """What an attempt does: it waits until it may end."""

    def __init__(self) -> None:
        self.databases: list[UUID] = []
        self.may_end = asyncio.Event()
        self.fault: Exception | None = None
        self.cancelled = False
        self.ended_as: Attempt | None = None

    async def __call__(self, database: UUID) -> None:
        self.databases.append(database)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        self.ended_as = attempt.current.get()
        if self.fault is not None:
            raise self.fault


def _begun() -> tuple[FirstAttempts, _Work]:
    first, work = FirstAttempts(), _Work()
    first.create_with(work)
    first.begin(_WORKFLOW, uuid4(), nullcontext())
    return first, work


def _taken(first: FirstAttempts) -> FirstAttempt:
    found = first.take(_WORKFLOW)
    assert found is not None
    return found


async def test_the_workflow_gets_what_was_begun_once_and_with_its_outcome() -> None:
    first, work = _begun()
    work.fault = RuntimeError("the host is away")
    work.may_end.set()
    await first.settle([_WORKFLOW], 10)
    with pytest.raises(RuntimeError, match="the host is away"):
        await _taken(first).finish()
    assert first.take(_WORKFLOW) is None
    assert len(work.databases) == 1


async def test_nobody_waits_for_one_longer_than_asked_and_it_goes_on() -> None:
    first, work = _begun()
    await first.settle([_WORKFLOW, "provision-database/unknown"], 0.01)
    work.may_end.set()
    await _taken(first).finish()
    assert work.ended_as is not None


async def test_it_ends_with_the_step_that_has_taken_it_over() -> None:
    first, work = _begun()
    step = asyncio.create_task(_taken(first).finish())
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert work.cancelled


async def test_to_the_operation_both_are_one_attempt_that_began_with_the_claim() -> None:
    first, work = _begun()
    step = Attempt(workflow_id=_WORKFLOW, activity="create_database", began=utc_now() + timedelta(hours=1))
    token = attempt.current.set(step)
    finishing = asyncio.create_task(_taken(first).finish())
    attempt.current.reset(token)
    await asyncio.sleep(0)
    work.may_end.set()
    await finishing
    assert work.ended_as is step
    assert step.began <= utc_now()


async def test_one_that_ends_before_its_step_has_reported_itself() -> None:
    first, work = _begun()
    work.may_end.set()
    await first.settle([_WORKFLOW], 10)
    assert work.ended_as is not None
    assert (work.ended_as.workflow_id, work.ended_as.activity) == (_WORKFLOW, "create_database")
    await _taken(first).finish()
