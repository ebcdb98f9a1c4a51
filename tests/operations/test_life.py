"""Every change that takes time has its operation, which ends in the transaction that ends the change."""

from datetime import timedelta
from unittest.mock import ANY
from uuid import UUID

import msgspec

from app.contracts.base import PauseReason
from app.core.clock import utc_now
from app.databases import access, limits, states
from app.databases.deletion import begin_destruction
from app.operations.attempt import Attempt, current
from app.operations.kinds import OperationStatus, OperationType
from app.operations.progress import begin_step, note_attempt, note_failure
from app.operations.reasons import ReasonCode
from app.provisioning import operator, service
from app.provisioning.lifecycle import abandon_provisioning
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from tests.operations.support import active, attempt_at, code_of, latest, provisioning, restored, row, steps_of
from tests.support.answers import data_of
from tests.support.in_process import LoneApi
from tests.support.lone_pool import LonePool
from tests.support.moves import activate

GRACE = timedelta(hours=1)


async def test_a_create_is_pending_until_the_database_is_active(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    created = await latest(database)
    assert (created.type, created.status) == (OperationType.CREATE, OperationStatus.PENDING)
    assert (created.user_id, created.key_id) == (caller.user_id, caller.key_id)
    assert created.request_id is not None
    assert created.deadline_at is not None
    assert created.team_id == caller.team_id
    assert steps_of(created) == {"place": "succeeded", "make": "pending"}
    await activate(database)
    await activate(database)  # an attempt whose answer was lost
    done = await latest(database)
    assert done.uuid == created.uuid
    assert done.status is OperationStatus.SUCCEEDED
    assert set(steps_of(done).values()) == {"succeeded"}
    assert done.finished_at is not None
    assert done.version == created.version + 1


async def test_a_create_from_the_pool_is_born_succeeded_in_the_same_transaction(pool: LonePool) -> None:
    host = await pool.api.add_host()
    await pool.add_members(2, host)
    for tier in ("pro", "free"):  # in one statement, and in the request's transaction
        caller = await pool.api.caller(tier=tier)
        database = data_of(await caller.create(), 201)["uuid"]
        rows = await fetch(
            "SELECT o.status, o.key_id, o.workflow_id, o.xmin = d.xmin AS together"
            " FROM operations o JOIN databases d ON d.id = o.database_id WHERE d.uuid = $1",
            database,
        )
        assert [tuple(one) for one in rows] == [("succeeded", caller.key_id, None, True)]


async def test_members_of_the_pool_have_none(pool: LonePool) -> None:
    (member,) = await pool.add_members(1, await pool.api.add_host(), status="provisioning")
    await activate(member)
    assert await fetch("SELECT 1 FROM operations") == []


async def test_a_member_with_other_limits_has_an_operation_for_them(pool: LonePool) -> None:
    await pool.add_members(1, await pool.api.add_host())
    caller = await pool.api.caller()
    database = data_of(await caller.create(connection_hard_limit=5), 201)["uuid"]
    rows = await fetch(
        "SELECT o.type, o.status FROM operations o JOIN databases d ON d.id = o.database_id"
        " WHERE d.uuid = $1 ORDER BY o.id",
        database,
    )
    assert [tuple(one) for one in rows] == [("create", "succeeded"), ("limits", "pending")]


async def test_what_such_changes_took_lately_is_expected(lone: LoneApi) -> None:
    took = [10, 30, 20]
    for seconds in took:
        _, database = await active(lone)
        await fetch(
            "UPDATE operations SET finished_at = operations.created_at + make_interval(secs => $2) FROM databases d"
            " WHERE d.id = database_id AND d.uuid = $1",
            database,
            float(seconds),
        )
    _, database = await provisioning(lone)
    assert (await latest(database)).expected_seconds == 20


async def test_a_create_that_is_deleted_meanwhile_is_cancelled(lone: LoneApi) -> None:
    _, database = await provisioning(lone)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, GRACE)
    created = await latest(database, OperationType.CREATE)
    assert (created.status, code_of(created)) == (OperationStatus.CANCELLED, "database_deleted")
    assert steps_of(created) == {"place": "succeeded", "make": "skipped"}
    deletion = await latest(database)
    assert (deletion.type, deletion.status) == (OperationType.DELETE, OperationStatus.PENDING)
    assert deletion.undo is None
    assert deletion.user_id is None
    await begin_destruction(database)
    assert (await latest(database)).irrevocable_step == "destroy"
    await states.record_destroyed(database)
    assert (await latest(database)).status is OperationStatus.SUCCEEDED


async def test_a_provisioning_that_is_cancelled_from_outside_is_cancelled(lone: LoneApi) -> None:
    _, database = await provisioning(lone)
    await abandon_provisioning(DEFAULT_PLANS, database)
    assert (await latest(database, OperationType.CREATE)).status is OperationStatus.CANCELLED


async def test_a_deletion_waits_out_its_grace_and_an_undeletion_cancels_it(lone: LoneApi) -> None:
    _, database = await active(lone)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, GRACE)
    await states.record_revoked(database)
    deletion = await latest(database)
    assert (deletion.status, code_of(deletion)) == (OperationStatus.WAITING, "grace_period")
    assert deletion.reason is not None
    assert deletion.reason.next_attempt_at == (await row(database)).destroy_at
    assert steps_of(deletion) == {"end_access": "succeeded", "keep_data": "running", "destroy": "pending"}
    await undelete(DEFAULT_PLANS, database)
    deletion = await latest(database, OperationType.DELETE)
    assert (deletion.status, code_of(deletion)) == (OperationStatus.CANCELLED, "undeleted")
    undeletion = await latest(database)
    assert (undeletion.type, undeletion.status) == (OperationType.UNDELETE, OperationStatus.PENDING)
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    assert (await latest(database)).status is OperationStatus.SUCCEEDED
    assert (await row(database)).status.value == "active"


async def test_a_slow_look_at_the_grace_takes_no_reason_away(lone: LoneApi) -> None:
    _, database = await active(lone)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, GRACE)
    await states.record_revoked(database)
    revoked = await latest(database)
    assert (revoked.status, code_of(revoked)) == (OperationStatus.WAITING, "grace_period")
    assert revoked.workflow_id is not None
    attempt = Attempt(workflow_id=revoked.workflow_id, activity="look_at_grace", began=utc_now())
    await note_attempt(attempt)
    await note_failure(attempt, ReasonCode.STORE_UNAVAILABLE)
    assert await latest(database) == msgspec.structs.replace(revoked, read_at=ANY)


async def test_limits_end_with_the_revision_that_the_engine_has(lone: LoneApi) -> None:
    _, database = await active(lone)
    for connections in (5, 6):
        async with transaction():
            found = await row(database)
            await limits.change_limits(found, found.quotas, connections)
    newest = (await row(database)).limits_revision
    await limits.record_limits_applied(database, newest - 1)
    assert await _limits(database) == ["succeeded", "pending"]
    await limits.record_limits_applied(database, newest)
    assert await _limits(database) == ["succeeded", "succeeded"]


async def test_limits_that_a_deletion_overtook_come_back_with_an_undeletion(lone: LoneApi) -> None:
    _, database = await active(lone)
    async with transaction():
        found = await row(database)
        await limits.change_limits(found, found.quotas, 5)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, GRACE)
    assert code_of(await latest(database, OperationType.LIMITS)) == "database_deleted"
    await undelete(DEFAULT_PLANS, database)
    again = await latest(database, OperationType.LIMITS)
    assert again.status is OperationStatus.PENDING
    assert again.revision == (await row(database)).limits_revision > found.limits_revision + 1


async def test_a_pause_that_is_resumed_before_it_was_in_force_is_cancelled(lone: LoneApi) -> None:
    _, database = await active(lone)
    await operator.pause(DEFAULT_PLANS, database)
    await operator.resume(database)
    pause = await latest(database, OperationType.PAUSE)
    assert (pause.status, code_of(pause)) == (OperationStatus.CANCELLED, "superseded")
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    resumption = await latest(database)
    assert (resumption.type, resumption.status) == (OperationType.RESUME, OperationStatus.SUCCEEDED)


async def test_a_pause_and_a_resumption_during_a_restore_wait_for_its_end(lone: LoneApi) -> None:
    _, database = await active(lone)
    async with transaction():
        await access.close(DEFAULT_PLANS, await row(database))
    await operator.pause(DEFAULT_PLANS, database)
    assert code_of(await latest(database, OperationType.PAUSE)) == "queued"
    await operator.resume(database)
    assert code_of(await latest(database, OperationType.RESUME)) == "queued"
    async with transaction():
        await access.reopen(await row(database))
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    assert (await latest(database, OperationType.RESUME)).status is OperationStatus.SUCCEEDED


async def test_a_restore_in_place_may_be_at_its_first_backup_for_hours(lone: LoneApi) -> None:
    _, database = await restored(lone)
    found = await row(database)
    async with transaction():
        await begin_step(found.id, OperationType.RESTORE, "back_up")
    await fetch("UPDATE operations SET changed_at = now() - interval '2 hours' WHERE database_id = $1", found.id)
    restoring = await latest(database)
    assert (steps_of(restoring)["back_up"], restoring.reason) == ("running", None)


async def test_what_is_made_before_a_load_is_no_attempt_at_it_unless_it_fails(lone: LoneApi) -> None:
    _, database = await restored(lone)
    for activity, attempts in (("prepare_restoration", 0), ("fill_database", 1)):
        await note_attempt(await attempt_at(database, activity))
        load = next(step for step in (await latest(database)).steps if step.name == "load")
        assert (load.status.value, load.attempts) == ("running", attempts)
    slow = await attempt_at(database, "prepare_restoration")
    await note_attempt(slow)
    await note_failure(slow, ReasonCode.HOST_UNAVAILABLE)
    load = next(step for step in (await latest(database)).steps if step.name == "load")
    assert load.attempts == 2


async def test_what_the_service_does_by_itself_is_requested_by_nobody(lone: LoneApi) -> None:
    _, database = await active(lone)
    async with transaction():
        await access.pause(DEFAULT_PLANS, await row(database), PauseReason.STORAGE)
    pause = await latest(database)
    assert (pause.type, pause.user_id, pause.key_id, pause.request_id) == (OperationType.PAUSE, None, None, None)


async def _limits(database: UUID) -> list[str]:
    rows = await fetch(
        "SELECT o.status FROM operations o JOIN databases d ON d.id = o.database_id"
        " WHERE d.uuid = $1 AND o.type = 'limits' ORDER BY o.id",
        database,
    )
    return [one["status"] for one in rows]


async def test_a_report_that_comes_late_reopens_no_step(lone: LoneApi) -> None:
    """What an activity does after its step, such as to measure what is left, is reported like the step."""
    caller, database = await active(lone)
    data_of(await caller.delete(f"/databases/{database}"))
    workflow_id = (await latest(database, OperationType.DELETE)).workflow_id
    assert workflow_id is not None
    attempt = Attempt(workflow_id=workflow_id, activity="revoke_access", began=utc_now())
    token = current.set(attempt)
    try:
        await states.record_revoked(database)
        revoked = await latest(database, OperationType.DELETE)
        await note_attempt(attempt)
        await note_failure(attempt, ReasonCode.HOST_UNAVAILABLE)
    finally:
        current.reset(token)
    assert await latest(database, OperationType.DELETE) == msgspec.structs.replace(revoked, read_at=ANY)
    ended = revoked.steps[0]
    assert (ended.name, ended.status, ended.started_at) == ("end_access", "succeeded", attempt.began)
    assert ended.finished_at is not None
    assert ended.finished_at > attempt.began
