"""What each workflow is about, and when nothing of it is left half done: one case for each type, or for each course
that it may take."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from temporalio.client import Client, ScheduleActionExecutionStartWorkflow, WorkflowFailureError

from app.contracts.base import PauseReason
from app.contracts.databases import RemoveRemnant, RemoveRemnantInput
from app.contracts.queues import remnant_workflow_id
from app.contracts.reconcile import HostRef
from app.contracts.upkeep import ScheduleId
from app.core.ids import engine_name, engine_password, marker
from app.core.secrets import SecretBox
from app.databases import access, records
from app.engines.base import EngineLimits, Tenant
from app.hosts.adapters import Adapters
from app.outbox import events
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import NORMAL, request_start
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from app.upkeep.reconcile.records import check_records
from app.upkeep.reconcile.service import reconcile_host, reconcile_records
from app.upkeep.reconcile.snapshot import PATIENCE
from tests.applications.support import saved
from tests.support.client import Caller
from tests.support.gates import Gates
from tests.support.waiting import until
from tests.support.webhooks import Thing, subscribed

_LONG_AGO = "now() - interval '1 hour'"
Settled = Callable[[], Awaitable[object]]


@dataclass
class ServiceUnderTest:
    """The service, with workers in this process."""

    caller: Caller
    client: Client
    gates: Gates
    box: SecretBox
    adapters: Adapters
    host: HostRef

    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def later(self, request: Coroutine[Any, Any, Any]) -> None:
        """Beside what follows; nobody asks for its answer."""
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def reconcile(self) -> None:
        await reconcile_records(self.client)
        await reconcile_host(DEFAULT_PLANS, self.box, self.adapters, self.host, None)

    async def row(self, database: str) -> dict[str, Any]:
        [row] = await fetch("SELECT * FROM databases WHERE uuid = $1", UUID(database))
        return dict(row)


@dataclass
class Begun:
    """`hurry` makes its row as old as it would be by the time that somebody wonders."""

    settled: Settled
    hurry: Callable[[], Awaitable[object]]


@dataclass
class Case:
    workflow: str
    begin: Callable[[ServiceUnderTest], Awaitable[Begun]]
    skipped: frozenset[str] = field(default_factory=frozenset)
    """Steps that come before those of this course."""


async def _hurried(database: str) -> None:
    await fetch(
        f"UPDATE databases SET created_at = {_LONG_AGO}, updated_at = {_LONG_AGO}, access_changed_at = {_LONG_AGO},"
        f" provisioned_at = CASE WHEN provisioned_at IS NULL THEN NULL ELSE {_LONG_AGO} END,"
        f" deleted_at = CASE WHEN status = 'deleted' THEN {_LONG_AGO} END,"
        f" destroy_at = CASE WHEN status = 'deleted' THEN {_LONG_AGO} END WHERE uuid = $1",
        UUID(database),
    )
    await fetch(
        f"UPDATE blueprint_applications a SET created_at = {_LONG_AGO},"
        f" started_at = CASE WHEN started_at IS NULL THEN NULL ELSE {_LONG_AGO} END"
        " FROM databases d WHERE d.id = a.database_id AND d.uuid = $1",
        UUID(database),
    )


def _about(place: ServiceUnderTest, database: str, is_settled: Callable[[dict[str, Any]], object]) -> Begun:
    async def settled() -> bool:
        about_it = [one for one in await check_records(PATIENCE) if database in (one.subject, one.detail)]
        return bool(is_settled(await place.row(database))) and not about_it

    return Begun(settled, lambda: _hurried(database))


def _is_whole(row: dict[str, Any]) -> object:
    return row["status"] == "active" or (row["status"] == "deleted" and row["destroyed_at"])


async def _provision(place: ServiceUnderTest) -> Begun:
    answer = await place.caller.create("by-hand")
    return _about(place, answer.json()["data"]["uuid"], _is_whole)


async def _provision_cancelled(place: ServiceUnderTest) -> Begun:
    async with place.gates.holding("ProvisionDatabase", "create_database") as gate:
        begun = await _provision(place)
        await gate.reached.wait()
        await place.client.get_workflow_handle(gate.workflow_id).cancel()
    return begun


async def _delete(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    # Its answer waits for a step that may be held.
    place.later(place.caller.delete(f"/databases/{database}"))
    return _about(place, database, lambda row: row["destroyed_at"])


async def _limits(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    place.later(place.caller.patch(f"/databases/{database}/quotas", {"connection_hard_limit": 3}))
    return _about(place, database, lambda row: 0 < row["limits_revision"] <= row["limits_applied"])


async def _access(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    async with transaction():
        record = await records.find_for_update(UUID(database))
        assert record is not None
        await access.pause(DEFAULT_PLANS, record, PauseReason.OPERATOR)
    return _about(place, database, lambda row: row["access_revision"] <= row["access_applied"])


async def _credentials(place: ServiceUnderTest) -> Begun:
    """A rotation without an overlap."""
    database = (await place.caller.created())["uuid"]
    place.later(place.caller.post(f"/databases/{database}/credential_rotations", {"overlap_seconds": 0}))

    async def rotation() -> list[Any]:
        return await fetch(
            "SELECT r.status FROM credential_rotations r JOIN databases d ON d.id = r.database_id WHERE d.uuid = $1",
            UUID(database),
        )

    async def settled() -> bool:
        return all(row["status"] in ("completed", "cancelled") for row in await rotation())

    async def hurry() -> None:
        await _hurried(database)
        await fetch(
            f"UPDATE credential_rotations r SET created_at = {_LONG_AGO}, changed_at = {_LONG_AGO}"
            " FROM databases d WHERE d.id = r.database_id AND d.uuid = $1",
            UUID(database),
        )

    await until(rotation)
    return Begun(settled, hurry)


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


async def _apply(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    blueprint = await saved(place.caller, "CREATE TABLE a (id integer PRIMARY KEY);")
    path = f"/databases/{database}/blueprint_applications"
    place.later(place.caller.post(path, {"blueprint_uuid": blueprint, "timeout": 1}))

    async def application() -> list[Any]:
        return await fetch(
            "SELECT a.completed_at, a.id::text AS subject FROM blueprint_applications a"
            " JOIN databases d ON d.id = a.database_id WHERE d.uuid = $1",
            UUID(database),
        )

    async def settled() -> bool:
        return all(row["completed_at"] for row in await application())

    await until(application)
    return Begun(settled, lambda: _hurried(database))


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
    endpoint = await _endpoint(place)
    async with transaction():
        await events.append(EventType.DATABASE_PAUSED, team_id=place.caller.team_id, database_id=None, data=Thing(1))
    await fetch(
        "UPDATE webhook_endpoints SET revoked_at = now() WHERE team_id = $1 AND id <> $2",
        place.caller.team_id,
        endpoint,
    )

    async def deliveries() -> list[Any]:
        return await fetch(
            "SELECT webhook_id, status, waiting FROM webhook_deliveries WHERE endpoint_id = $1", endpoint
        )

    async def settled() -> bool:
        stuck = {one.subject for one in await check_records(PATIENCE) if one.rule == "delivery_stuck"}
        rows = [row for row in await deliveries() if row["status"] == "pending"]
        return all(row["waiting"] and row["webhook_id"] not in stuck for row in rows)

    async def hurry() -> None:
        await fetch(
            f"UPDATE webhook_deliveries SET next_attempt_at = {_LONG_AGO}"
            " WHERE endpoint_id = $1 AND status = 'pending' AND NOT waiting",
            endpoint,
        )

    await until(deliveries)
    return Begun(settled, hurry)


async def _backup(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    place.later(place.caller.post(f"/databases/{database}/backups", {}))

    async def backups() -> list[Any]:
        return await fetch("SELECT status FROM backups WHERE database_uuid = $1", UUID(database))

    async def settled() -> bool:
        return all(row["status"] not in ("pending", "running") for row in await backups())

    async def hurry() -> None:
        await fetch(
            f"UPDATE backups SET changed_at = {_LONG_AGO}, beat_at = NULL WHERE database_uuid = $1", UUID(database)
        )

    await until(backups)
    return Begun(settled, hurry)


async def _proof(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    path = f"/databases/{database}/backups?wait=true&timeout=60"
    backup = (await place.caller.post(path, {})).json()["data"]["uuid"]
    place.later(place.caller.post(f"/backups/{backup}/restore_tests", None))

    async def proof() -> Any:
        [row] = await fetch("SELECT proof_status, proof_number FROM backups WHERE uuid = $1", UUID(backup))
        return row

    async def begun() -> bool:
        return bool((await proof())["proof_number"] > 0)

    async def settled() -> bool:
        return bool((await proof())["proof_status"] != "running")

    async def hurry() -> None:
        await fetch(
            f"UPDATE backups SET proof_changed_at = {_LONG_AGO}, proof_beat_at = NULL WHERE uuid = $1", UUID(backup)
        )

    await until(begun)
    return Begun(settled, hurry)


_SHORT_STEPS = ("prepare_restoration", "close_database", "back_up_first", "end_scratch")


async def _restore(place: ServiceUnderTest) -> Begun:
    database = (await place.caller.created())["uuid"]
    backup = await _backup_of(place, database)
    await place.caller.post(f"/databases/{database}/restorations", {"backup_uuid": backup})

    async def settled() -> bool:
        rows = await fetch(
            "SELECT r.ended_at, c.destroyed_at, c.id FROM restorations r JOIN databases d ON d.id = r.database_id"
            " LEFT JOIN databases c ON c.id = r.scratch_id WHERE d.uuid = $1",
            UUID(database),
        )
        row = await place.row(database)
        return row["status"] == "active" and all(one["ended_at"] and one["destroyed_at"] for one in rows)

    async def hurry() -> None:
        await _hurried(database)
        await fetch(
            f"UPDATE restorations r SET created_at = {_LONG_AGO},"
            f" ended_at = CASE WHEN r.ended_at IS NULL THEN NULL ELSE {_LONG_AGO} END"
            " FROM databases d WHERE d.id = r.database_id AND d.uuid = $1",
            UUID(database),
        )

    return Begun(settled, hurry)


async def _backup_of(place: ServiceUnderTest, database: str) -> str:
    params = {"wait": "true", "timeout": "60"}
    answer = await place.caller.post(f"/databases/{database}/backups", {}, params=params)
    return str(answer.json()["data"]["uuid"])


async def _nothing() -> None:
    pass


# What is about all databases comes first, while there are few.
CASES = {
    "RefillPool": Case("RefillPool", _scheduled(ScheduleId.REFILL_POOL)),
    "Sweep": Case("Sweep", _scheduled(ScheduleId.SWEEP)),
    "Reconcile": Case("Reconcile", _scheduled(ScheduleId.RECONCILE)),
    "EnforceQuotas": Case("EnforceQuotas", _scheduled(ScheduleId.ENFORCE_QUOTAS)),
    "ReclaimSpace": Case("ReclaimSpace", _scheduled(ScheduleId.RECLAIM_SPACE)),
    "CloseUsage": Case("CloseUsage", _scheduled(ScheduleId.CLOSE_USAGE)),
    "ProvisionDatabase": Case("ProvisionDatabase", _provision),
    "ProvisionDatabase, cancelled": Case("ProvisionDatabase", _provision_cancelled, frozenset({"create_database"})),
    "DeleteDatabase": Case("DeleteDatabase", _delete),
    "ApplyLimits": Case("ApplyLimits", _limits),
    "ApplyAccess": Case("ApplyAccess", _access),
    "ApplyCredentials": Case("ApplyCredentials", _credentials),
    "RemoveRemnant": Case("RemoveRemnant", _remnant),
    "ApplyBlueprint": Case("ApplyBlueprint", _apply),
    "ApplyBlueprint, cancelled": Case("ApplyBlueprint", _apply_cancelled, frozenset({"apply_blueprint"})),
    "BackupDatabase": Case("BackupDatabase", _backup),
    "ProveBackup": Case("ProveBackup", _proof),
    # The others are short, and one of ours each.
    "RestoreDatabase": Case("RestoreDatabase", _restore, frozenset(_SHORT_STEPS)),
    "DeliverWebhook": Case("DeliverWebhook", _deliver),
}
