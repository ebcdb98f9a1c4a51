"""What each workflow is about, and when nothing of it is left half done: one case for each type, or for each course
that it may take."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

from temporalio.client import ScheduleActionExecutionStartWorkflow, WorkflowFailureError

from app.contracts.base import PauseReason
from app.contracts.databases import RemoveRemnant, RemoveRemnantInput
from app.contracts.queues import remnant_workflow_id
from app.contracts.upkeep import ScheduleId
from app.contracts.webhooks import DeliverWebhook, DeliverWebhookInput
from app.core.ids import engine_name, engine_password, marker
from app.databases import access, records
from app.engines.base import EngineLimits, Tenant
from app.outbox.workflow_starts import NORMAL, request_start
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from tests.applications.support import saved
from tests.support.waiting import until
from tests.support.webhooks import subscribed
from tests.upkeep.reconcile.by_hand_backups import BACKUPS
from tests.upkeep.reconcile.by_hand_credentials import CREDENTIALS
from tests.upkeep.reconcile.interrupted import LONG_AGO, Begun, Case, ServiceUnderTest, about, hurried


def _is_whole(row: dict[str, Any]) -> object:
    return row["status"] == "active" or (row["status"] == "deleted" and row["destroyed_at"])


async def _provision(place: ServiceUnderTest) -> Begun:
    answer = await place.caller.create("by-hand")
    return about(place, answer.json()["data"]["uuid"], _is_whole)


async def _provision_cancelled(place: ServiceUnderTest) -> Begun:
    """Before there is anything of it: what was made meanwhile would be active, and stay."""
    async with place.gates.holding("ProvisionDatabase", "create_database", away=True) as gate:
        begun = await _provision(place)
        await gate.reached.wait()
        await place.client.get_workflow_handle(gate.workflow_id).cancel()
        await until(lambda: place.gates.has_reached(gate.workflow_id, "abandon_provisioning"))
    return begun


async def _delete(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    # Its answer waits for a step that may be held.
    place.later(place.caller.delete(f"/databases/{database}"))
    return about(place, database, lambda row: row["destroyed_at"])


async def _limits(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    place.later(place.caller.patch(f"/databases/{database}/quotas", {"connection_hard_limit": 3}))
    return about(place, database, lambda row: 0 < row["limits_revision"] <= row["limits_applied"])


async def _access(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    async with transaction():
        record = await records.find_for_update(UUID(database))
        assert record is not None
        await access.pause(DEFAULT_PLANS, record, PauseReason.OPERATOR)
    return about(place, database, lambda row: row["access_revision"] <= row["access_applied"])


async def _remnant(place: ServiceUnderTest) -> Begun:
    """Without a row: what is left of it is an orphan."""
    database = UUID((await place.caller.created())["uuid"])
    remnant = Tenant(name=engine_name(), password=engine_password(), marker=marker(database))
    adapter = await place.adapters.of_host(place.host.host_id)
    await adapter.create(remnant, EngineLimits(connections=1))
    async with transaction():
        await request_start(
            RemoveRemnant,
            remnant_workflow_id(database, place.host.host_id, uuid4()),
            RemoveRemnantInput(
                database=database,
                engine=place.host.engine,
                region=place.host.region,
                team_id=place.caller.team_id,
                host_id=place.host.host_id,
                name=remnant.name,
            ),
            priority=NORMAL,
            relayed=True,
        )

    async def settled() -> bool:
        gone = all(one.name != remnant.name for one in await adapter.list_tenants())
        rows = await fetch("SELECT 1 FROM findings WHERE subject = $1 AND rule = 'orphan_on_host'", remnant.name)
        return gone or bool(rows)

    return Begun(settled, _nothing)


async def _apply(place: ServiceUnderTest, *, dry_run: bool = False) -> Begun:
    database = (await place.caller.created())["uuid"]
    blueprint = await saved(place.caller, "CREATE TABLE a (id integer PRIMARY KEY);")
    path = f"/databases/{database}/blueprint_applications"
    place.later(place.caller.post(path, {"blueprint_uuid": blueprint, "timeout": 1, "dry_run": dry_run}))

    async def application() -> list[Any]:
        return await fetch(
            "SELECT a.completed_at, a.id::text AS subject FROM blueprint_applications a"
            " JOIN databases d ON d.id = a.database_id WHERE d.uuid = $1",
            UUID(database),
        )

    async def settled() -> bool:
        return all(row["completed_at"] for row in await application())

    await until(application)
    return Begun(settled, lambda: hurried(database))


async def _apply_cancelled(place: ServiceUnderTest) -> Begun:
    async with place.gates.holding("ApplyBlueprint", "apply_blueprint") as gate:
        begun = await _apply(place)
        await gate.reached.wait()
        await place.client.get_workflow_handle(gate.workflow_id).cancel()
    return begun


def _scheduled(schedule: ScheduleId) -> Callable[[ServiceUnderTest], Awaitable[Begun]]:
    """The next run does what this one left."""

    async def begin(place: ServiceUnderTest) -> Begun:
        handle = place.client.get_schedule_handle(schedule.value)
        await handle.trigger()

        async def settled() -> bool:
            info = (await handle.describe()).info
            if info.running_actions:
                return False
            await handle.trigger()

            async def latest() -> str:
                now = (await handle.describe()).info
                run = now.recent_actions[-1].action
                assert isinstance(run, ScheduleActionExecutionStartWorkflow)
                return run.workflow_id if now.num_actions > info.num_actions else ""

            started = place.client.get_workflow_handle(await until(latest))
            try:
                await started.result()
            except WorkflowFailureError:
                return False
            return True

        return Begun(settled, _nothing)

    return begin


async def _endpoint(place: ServiceUnderTest) -> int:
    """Nothing is ever sent inside."""
    endpoint, _ = await subscribed(place.caller, "https://receiver.invalid/")
    return endpoint


async def _deliver(place: ServiceUnderTest) -> Begun:
    """As an API of version 0.1.0 began it."""
    endpoint = await _endpoint(place)
    (row,) = await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, next_attempt_at)"
        " VALUES ($1, $2, 'ping', $3, now()) RETURNING id",
        f"msg_{endpoint}",
        endpoint,
        '{"event": "ping", "timestamp": "", "data": {}}',
    )
    request = DeliverWebhookInput(
        delivery=row["id"], endpoint=endpoint, team_id=place.caller.team_id, event="database.provisioned"
    )
    async with transaction():
        await request_start(DeliverWebhook, f"deliver-webhook/{endpoint}", request, priority=NORMAL)

    async def settled() -> bool:
        rows = await fetch(
            "SELECT 1 FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'pending' AND NOT waiting", endpoint
        )
        return not rows

    async def hurry() -> None:
        await fetch(
            f"UPDATE webhook_deliveries SET next_attempt_at = {LONG_AGO} WHERE endpoint_id = $1 AND NOT waiting",
            endpoint,
        )

    return Begun(settled, hurry)


async def _nothing() -> None:
    pass


async def _dry_run(place: ServiceUnderTest) -> Begun:
    return await _apply(place, dry_run=True)


# What is about all databases comes first, while there are few.
CASES = {
    "RefillPool": Case("RefillPool", _scheduled(ScheduleId.REFILL_POOL)),
    "Sweep": Case("Sweep", _scheduled(ScheduleId.SWEEP)),
    "Reconcile": Case("Reconcile", _scheduled(ScheduleId.RECONCILE)),
    "EnforceQuotas": Case("EnforceQuotas", _scheduled(ScheduleId.ENFORCE_QUOTAS)),
    "ReclaimSpace": Case("ReclaimSpace", _scheduled(ScheduleId.RECLAIM_SPACE)),
    "CloseUsage": Case("CloseUsage", _scheduled(ScheduleId.CLOSE_USAGE)),
    "ProvisionDatabase": Case("ProvisionDatabase", _provision, waits="create_database"),
    "ProvisionDatabase, cancelled": Case(
        "ProvisionDatabase", _provision_cancelled, frozenset({"create_database", "replace_host"})
    ),
    "DeleteDatabase": Case("DeleteDatabase", _delete, waits="revoke_access"),
    "ApplyLimits": Case("ApplyLimits", _limits, waits="apply_limits"),
    "ApplyAccess": Case("ApplyAccess", _access, waits="apply_access"),
    **CREDENTIALS,
    "RemoveRemnant": Case("RemoveRemnant", _remnant, waits="remove_remnant"),
    "ApplyBlueprint": Case("ApplyBlueprint", _apply, waits="apply_blueprint"),
    "ApplyBlueprint, a dry run": Case("ApplyBlueprint", _dry_run),
    "ApplyBlueprint, cancelled": Case("ApplyBlueprint", _apply_cancelled, frozenset({"apply_blueprint"})),
    **BACKUPS,
    "DeliverWebhook": Case("DeliverWebhook", _deliver),
}
