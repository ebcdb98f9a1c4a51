"""Databases of a team without a server, and what their operations say."""

from typing import Any
from uuid import UUID

from app.backups.restores.in_place import NEW_DATABASE_STEPS
from app.core.clock import utc_now
from app.databases import records
from app.databases.records import DatabaseRecord
from app.operations.acceptance import accept
from app.operations.attempt import Attempt
from app.operations.kinds import OperationType
from app.operations.progress import note_failure
from app.operations.reasons import ReasonCode
from app.operations.records import OperationRecord, find_latest
from app.store.session import transaction
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import activate


async def provisioning(lone: LoneApi, **fields: Any) -> tuple[Caller, UUID]:
    """A database that is still to be made."""
    caller = await lone.caller()
    return caller, UUID(data_of(await caller.create(**fields), 202)["uuid"])


async def active(lone: LoneApi, **fields: Any) -> tuple[Caller, UUID]:
    """One that counts as made."""
    caller, database = await provisioning(lone, **fields)
    await activate(database)
    return caller, database


async def restored(lone: LoneApi) -> tuple[Caller, UUID]:
    """A database whose restore in place is accepted."""
    caller, database = await active(lone)
    workflow_id = f"restore-database/{database}"
    async with transaction():
        await accept(OperationType.RESTORE, await row(database), workflow_id=workflow_id, without=NEW_DATABASE_STEPS)
    return caller, database


async def row(database: UUID) -> DatabaseRecord:
    found = await records.find(database)
    assert found is not None
    return found


async def latest(database: UUID, *types: OperationType) -> OperationRecord:
    found = await find_latest(database, *(types or tuple(OperationType)))
    assert found is not None
    return found


async def attempt_at(database: UUID, activity: str) -> Attempt:
    """One of this activity, of the latest operation."""
    operation = await latest(database)
    assert operation.workflow_id is not None
    return Attempt(workflow_id=operation.workflow_id, activity=activity, began=utc_now())


async def fail_attempt(database: UUID, activity: str) -> OperationRecord:
    """The latest operation, waiting for its next attempt after one of this activity that failed."""
    await note_failure(await attempt_at(database, activity), ReasonCode.HOST_UNAVAILABLE)
    return await latest(database)


def steps_of(record: OperationRecord) -> dict[str, str]:
    return {step.name: step.status.value for step in record.steps}


def code_of(record: OperationRecord) -> str | None:
    """Of the reason that was written: that no worker came, the age of an operation tells on a busy machine."""
    reason = record.stored_reason
    return None if reason is None else reason.code.value
