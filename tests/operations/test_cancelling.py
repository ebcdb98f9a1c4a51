"""Cancelling: up to each kind's point of no return, and what was changed is put back."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from app.auth.principal import Principal
from app.auth.roles import Role
from app.contracts.retries import CANCEL, RETRY_NOW
from app.core.errors import InsufficientRole, NotFound, OperationEnded, OperationNotCancellable
from app.databases import access, limits, states
from app.databases.deletion import begin_destruction
from app.databases.schemas import ChangeQuotas
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.records import OperationRecord, find
from app.provisioning import operation_service, operator, service
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import execute, fetch, transaction
from tests.operations.support import active, code_of, fail_attempt, latest, provisioning, row
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.principals import principal_of

GRACE = timedelta(hours=1)


async def _cancel(operation: OperationRecord) -> None:
    async with transaction():
        await operation_service.cancel_any(DEFAULT_PLANS, CANCELLATIONS, operation.uuid)


async def _signals() -> list[tuple[str, str]]:
    rows = await fetch("SELECT workflow_id, signal FROM workflow_starts WHERE input = 'null'::jsonb ORDER BY id")
    return [(one["workflow_id"], one["signal"]) for one in rows]


async def _deleted(lone: LoneApi) -> tuple[Caller, UUID]:
    caller, database = await active(lone)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, GRACE)
    return caller, database


def test_every_kind_can_be_cancelled() -> None:
    assert set(CANCELLATIONS) == set(KINDS)


async def test_a_create_is_cancelled_as_by_a_deletion(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    async with transaction():
        principal = principal_of(caller)
        await operation_service.cancel(DEFAULT_PLANS, CANCELLATIONS, principal, (await latest(database)).uuid)
    created = await latest(database, OperationType.CREATE)
    assert (created.status, code_of(created)) == (OperationStatus.CANCELLED, "cancelled")
    assert (await caller.get(f"/databases/{database}")).status_code == 404
    found = await row(database)
    assert found.cancelled_provision_jobs == 1
    assert found.destroy_at is not None
    assert (await latest(database)).type is OperationType.DELETE


async def test_a_deletion_is_cancelled_as_by_an_undeletion(lone: LoneApi) -> None:
    _, database = await _deleted(lone)
    await _cancel(await latest(database, OperationType.DELETE))
    assert (await latest(database, OperationType.DELETE)).status is OperationStatus.CANCELLED
    assert (await row(database)).status.value == "paused"
    assert (await latest(database)).type is OperationType.UNDELETE


async def test_the_answer_names_the_operation_by_which_access_comes_back(lone: LoneApi) -> None:
    """It comes before access does: what brings that back is under way then, and tells of itself."""
    caller, database = await active(lone)
    data_of(await caller.delete(f"/databases/{database}"))
    deletion = await latest(database, OperationType.DELETE)
    body = body_of(await caller.post(f"/operations/{deletion.uuid}/cancellations", None))
    assert (body["data"]["uuid"], body["data"]["status"]) == (str(deletion.uuid), "cancelled")
    undeletion = await latest(database)
    assert (undeletion.type, undeletion.status) == (OperationType.UNDELETE, OperationStatus.PENDING)
    assert body["operation"] == {"uuid": str(undeletion.uuid), "status": "pending"}
    assert data_of(await caller.get(f"/databases/{database}"))["status"] == "paused"
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    path = f"/operations/{undeletion.uuid}"
    assert data_of(await caller.get(path, params={"wait": "true"}))["status"] == "succeeded"
    assert data_of(await caller.get(f"/databases/{database}"))["status"] == "active"


async def test_the_answer_names_the_deletion_that_clears_up_after_a_create(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    body = body_of(await caller.post(f"/operations/{(await latest(database)).uuid}/cancellations", None))
    deletion = await latest(database, OperationType.DELETE)
    assert body["operation"]["uuid"] == str(deletion.uuid)
    assert data_of(await caller.get(f"/operations/{deletion.uuid}"))["database_uuid"] == str(database)


async def test_a_deletion_whose_destruction_has_begun_stays(lone: LoneApi) -> None:
    _, database = await _deleted(lone)
    await fetch("UPDATE databases SET destroy_at = now() WHERE uuid = $1", database)
    with pytest.raises(OperationNotCancellable) as over:  # the row decides, before any step has begun
        await _cancel(await latest(database, OperationType.DELETE))
    assert over.value.details == {"status": "pending", "step": "destroy"}
    await begin_destruction(database)
    deletion = await latest(database, OperationType.DELETE)
    assert not deletion.undoable
    with pytest.raises(OperationNotCancellable) as begun:
        await _cancel(deletion)
    assert begun.value.details == {"status": "running", "step": "destroy"}
    await states.record_destroyed(database)
    with pytest.raises(OperationNotCancellable):
        await _cancel(deletion)
    assert (await latest(database)).status is OperationStatus.SUCCEEDED


async def test_an_undeletion_is_cancelled_as_by_a_deletion_with_what_was_left_of_its_grace(lone: LoneApi) -> None:
    _, database = await _deleted(lone)
    before = (await row(database)).destroy_at
    assert before is not None
    await undelete(DEFAULT_PLANS, database)
    await _cancel(await latest(database, OperationType.UNDELETE))
    found = await row(database)
    assert found.status.value == "deleted"
    assert found.destroy_at is not None
    assert before <= found.destroy_at < before + GRACE
    deletion = await latest(database)
    assert (deletion.type, deletion.status) == (OperationType.DELETE, OperationStatus.PENDING)
    assert (await latest(database, OperationType.UNDELETE)).status is OperationStatus.CANCELLED


async def test_cancelling_an_undeletion_takes_the_role_of_a_deletion(lone: LoneApi) -> None:
    caller, database = await _deleted(lone)
    await undelete(DEFAULT_PLANS, database)
    undeletion = await latest(database, OperationType.UNDELETE)
    await execute("UPDATE operations SET user_id = $2 WHERE uuid = $1", undeletion.uuid, caller.user_id)
    with pytest.raises(InsufficientRole):
        await _cancel_as(replace(principal_of(caller), team_roles=[Role.MEMBER]), undeletion)
    assert (await row(database)).status.value == "paused"
    await _cancel_as(replace(principal_of(caller), team_roles=[Role.ADMIN]), undeletion)
    assert (await row(database)).status.value == "deleted"


async def test_limits_go_back_one_by_one(lone: LoneApi) -> None:
    caller, database = await active(lone)
    before = await row(database)
    for connections in (5, 6):
        async with transaction():
            found = await row(database)
            change = ChangeQuotas(connection_hard_limit=connections)
            await service.change_quotas(DEFAULT_PLANS, principal_of(caller), found.uuid, change)
    second = await latest(database, OperationType.LIMITS)
    first = await _before(second)
    with pytest.raises(OperationNotCancellable):
        await _cancel(first)
    await _cancel(second)
    assert (await row(database)).connections == 5
    await _cancel(first)
    found = await row(database)
    assert (found.connections, found.quotas) == (before.connections, before.quotas)
    assert found.limits_revision == before.limits_revision + 4
    await limits.record_limits_applied(database, found.limits_revision)
    assert [(await latest(database, OperationType.LIMITS)).status, (await _before(second)).status] == [
        OperationStatus.CANCELLED
    ] * 2


async def test_limits_whose_connections_were_given_away_stay(lone: LoneApi) -> None:
    caller, database = await active(lone)
    change = ChangeQuotas(connection_hard_limit=2)
    async with transaction():
        await service.change_quotas(DEFAULT_PLANS, principal_of(caller), database, change)
    await fetch("UPDATE engine_hosts SET connection_capacity = 3")
    with pytest.raises(OperationNotCancellable):
        await _cancel(await latest(database, OperationType.LIMITS))
    assert (await row(database)).connections == 2


async def test_limits_from_before_that_users_have_outgrown_stay(control_dsn: str) -> None:
    """Together its logins would have more connections than the database."""
    async with lone_api(control_dsn, limits_timeout_seconds=0.1, revocation_timeout_seconds=0.1) as api:
        await api.add_host()
        caller, database = await active(api)
        for connections in (10, 50):
            data_of(await caller.patch(f"/databases/{database}/quotas", {"connection_hard_limit": connections}))
        asked = {"name": "reports", "access": "read_only", "connection_limit": 40}
        error_of(await caller.post(f"/databases/{database}/users", asked), 503, "credentials_pending")
        raised = await latest(database, OperationType.LIMITS)
        cancellation = f"/operations/{raised.uuid}/cancellations"
        refused = error_of(await caller.post(cancellation, None), 409, "operation_not_cancellable")
        assert "The database's users have 40 connections; it needs 41 at least." in refused["message"]
        assert (await row(database)).connections == 50
        assert (await latest(database, OperationType.LIMITS)).finished_at is None
        # What leaves them room can be cancelled.
        await execute("UPDATE database_users SET connection_limit = 9")
        data_of(await caller.post(cancellation, None))
        assert (await row(database)).connections == 10


async def test_a_pause_and_a_resumption_go_back(lone: LoneApi) -> None:
    _, database = await active(lone)
    await operator.pause(DEFAULT_PLANS, database)
    await _cancel(await latest(database, OperationType.PAUSE))
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    assert (await row(database)).status.value == "active"
    assert (await latest(database, OperationType.PAUSE)).status is OperationStatus.CANCELLED
    await operator.pause(DEFAULT_PLANS, database)
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    await operator.resume(database)
    await _cancel(await latest(database, OperationType.RESUME))
    await access.record_applied(DEFAULT_PLANS, database, (await row(database)).access_revision)
    found = await row(database)
    assert (found.status.value, found.paused_reason and found.paused_reason.value) == ("paused", "operator")


async def test_a_client_cancels_nothing_that_no_client_asked_for(lone: LoneApi) -> None:
    caller, database = await active(lone)
    await operator.pause(DEFAULT_PLANS, database)
    pause = await latest(database)
    assert pause.undoable
    assert not pause.cancellable
    with pytest.raises(OperationNotCancellable):
        await _cancel_as(principal_of(caller), pause)
    with pytest.raises(NotFound):
        await _cancel_as(principal_of(await lone.caller()), pause)


async def test_a_client_cancels_nothing_that_an_operator_asked_for_by_the_api(control_dsn: str) -> None:
    """Nor is it told which operator that was."""
    async with lone_api(control_dsn, revocation_timeout_seconds=0.1) as api:
        await api.add_host()
        caller, database = await active(api)
        operating = await api.caller(scopes=OPERATOR_TOO)
        path = f"/operator/databases/{database}/pauses"
        for method, type, reason in (("POST", "pause", "operator"), ("DELETE", "resume", None)):
            begun = body_of(await operating.request(method, path, key=str(uuid4())))["operation"]["uuid"]
            shown = data_of(await caller.get(f"/operations/{begun}"))
            assert (shown["type"], shown["requested_by"], shown["cancellable"]) == (type, None, False)
            refused = await caller.post(f"/operations/{begun}/cancellations", {})
            error_of(refused, 409, "operation_not_cancellable")
            found = await row(database)
            assert (found.status.value, found.paused_reason and found.paused_reason.value) == ("paused", reason)
        (told,) = data_of(await caller.get("/audit_events", params={"action": "database.operator_pause"}))
        assert told["actor"]["user_id"] == operating.user_id


async def test_retrying_wakes_the_workflow_once_in_each_pause(lone: LoneApi) -> None:
    """A workflow keeps each signal in its history, whose length is bounded."""
    caller, database = await provisioning(lone)
    sent = []
    for _ in range(2):
        operation = await fail_attempt(database, "create_database")
        for _ in range(3):
            async with transaction():
                await operation_service.retry(principal_of(caller), operation.uuid)
            sent += await _signals()
            await execute("DELETE FROM workflow_starts WHERE signal IS NOT NULL")
    assert sent == [(operation.workflow_id, RETRY_NOW)] * 2
    await _cancel(operation)
    async with transaction():
        with pytest.raises(OperationEnded):
            await operation_service.retry(principal_of(caller), operation.uuid)


async def test_an_application_that_waits_ends_at_once_and_one_that_runs_is_signalled(lone: LoneApi) -> None:
    caller, database = await active(lone)
    blueprint = data_of(
        await caller.post("/blueprints", {"name": "one", "sql_content": "CREATE TABLE one (id int);"}), 201
    )["uuid"]
    applications = [
        data_of(
            await caller.post(
                f"/databases/{database}/blueprint_applications", {"blueprint_uuid": blueprint, "timeout": 1}
            ),
            202,
        )["id"]
        for _ in range(2)
    ]
    first, second = [await _of(application) for application in applications]
    assert (code_of(first), code_of(second)) == (None, "queued")
    await fetch("UPDATE blueprint_applications SET status = 'running' WHERE id = $1", applications[0])
    await _cancel(first)
    first = await _of(applications[0])
    assert (first.status, code_of(first)) == (OperationStatus.PENDING, "cancelling")
    await _cancel(second)
    second = await _of(applications[1])
    assert (second.status, code_of(second)) == (OperationStatus.CANCELLED, "cancelled")
    rows = await fetch("SELECT status, values_sealed FROM blueprint_applications WHERE id = $1", applications[1])
    assert tuple(rows[0]) == ("failed", None)
    assert [signal for _, signal in await _signals()] == [CANCEL, RETRY_NOW]


async def _cancel_as(principal: Principal, operation: OperationRecord) -> None:
    async with transaction():
        await operation_service.cancel(DEFAULT_PLANS, CANCELLATIONS, principal, operation.uuid)


async def _of(application: int) -> OperationRecord:
    rows = await fetch("SELECT uuid FROM operations WHERE undo ->> 'application' = $1", str(application))
    found = await find(rows[0]["uuid"])
    assert found is not None
    return found


async def _before(operation: OperationRecord) -> OperationRecord:
    rows = await fetch(
        "SELECT uuid FROM operations WHERE database_id = $1 AND type = $2 AND id < $3 ORDER BY id DESC LIMIT 1",
        operation.database_id,
        operation.type.value,
        operation.id,
    )
    found = await find(rows[0]["uuid"])
    assert found is not None
    return found
