"""Activities that follow a script in place of touching anything, by the contract's own interfaces."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from temporalio import activity
from temporalio.exceptions import ApplicationError

from app.contracts.applications import ApplicationActivities, ApplicationResult, ApplicationStatus
from app.contracts.backups import (
    BackupActivities,
    BackupRecordActivities,
    BackupStatus,
    ProofActivities,
    ProofStatus,
    ProveBackupInput,
)
from app.contracts.control import ControlActivities, GracePeriod, HostFailure, LimitsApplied
from app.contracts.credentials import CredentialActivities
from app.contracts.databases import Placement
from app.contracts.engine import EngineActivities, RemnantRef
from app.contracts.pool import PoolActivities, PoolHostActivities, RefillResult, VerifyMembers
from app.contracts.quotas import FrozenDatabase, MeasureRegion, QuotaActivities, QuotaHostActivities, RegionMeasurement
from app.contracts.reconcile import HostReconcileActivities, HostRef, ReconcileActivities, ReconcileStep
from app.contracts.restores import (
    FillActivities,
    RestorationFailure,
    RestorationKind,
    RestoreActivities,
    RestoreRecordActivities,
)
from app.contracts.upkeep import SweepActivities, SweepResult
from app.contracts.usage import ClosedPeriods, UsageActivities

_SOON = timedelta(milliseconds=10)
CLEAN = ReconcileStep(findings={}, messages=[], repairs=[])
Play = Callable[[], Any]


def fails(kind: str, message: str = "as the script says", *, final: bool = False) -> Play:
    def play() -> Any:
        # As many attempts as the policy allows, but without its waits.
        raise ApplicationError(message, type=kind, non_retryable=final, next_retry_delay=_SOON)

    return play


@dataclass
class Script:
    """What the activities do: for each name, one play a call; after the last, success at once.

    `hangs` names activities that hang until they are cancelled, or no longer named. `calls` tells what was called, in
    order.
    """

    plays: dict[str, list[Play]] = field(default_factory=dict)
    forever: dict[str, Play] = field(default_factory=dict)
    hangs: frozenset[str] = frozenset()
    calls: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)

    async def perform(self, argument: Any, otherwise: Any = None) -> Any:
        name = activity.info().activity_type
        self.calls.append(name)
        self.arguments.append(argument)
        if name in self.hangs:
            self.hanging.set()
            while name in self.hangs:
                if not activity.info().is_local:
                    activity.heartbeat()
                await asyncio.sleep(0.05)
        if self.plays.get(name):
            return self.plays[name].pop(0)()
        return self.forever[name]() if name in self.forever else otherwise


class FakeEngine(EngineActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="create_database")
    async def create_database(self, database: UUID) -> None:
        await self._script.perform(database)

    @activity.defn(name="apply_limits")
    async def apply_limits(self, database: UUID) -> int:
        return int(await self._script.perform(database, 1))

    @activity.defn(name="apply_access")
    async def apply_access(self, database: UUID) -> str:
        return str(await self._script.perform(database, "paused (operator)"))

    @activity.defn(name="revoke_access")
    async def revoke_access(self, database: UUID) -> None:
        await self._script.perform(database)

    @activity.defn(name="destroy_database")
    async def destroy_database(self, database: UUID) -> None:
        await self._script.perform(database)

    @activity.defn(name="remove_remnant")
    async def remove_remnant(self, remnant: RemnantRef) -> None:
        await self._script.perform(remnant)

    @activity.defn(name="close_remnant")
    async def close_remnant(self, remnant: RemnantRef) -> None:
        await self._script.perform(remnant)


class FakeControl(ControlActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="replace_host")
    async def replace_host(self, failure: HostFailure) -> Placement:
        placement: Placement = await self._script.perform(failure, failure.placement)
        return placement

    @activity.defn(name="abandon_provisioning")
    async def abandon_provisioning(self, database: UUID) -> None:
        await self._script.perform(database)

    @activity.defn(name="look_at_grace")
    async def get_grace_period(self, database: UUID) -> GracePeriod:
        over = GracePeriod(ends_at=datetime(2026, 1, 1, tzinfo=UTC), remaining_seconds=0)
        grace: GracePeriod = await self._script.perform(database, over)
        return grace

    @activity.defn(name="record_destroyed")
    async def record_destroyed(self, database: UUID) -> None:
        await self._script.perform(database)

    @activity.defn(name="record_limits_applied")
    async def record_limits_applied(self, applied: LimitsApplied) -> None:
        await self._script.perform(applied)


class FakeCredentials(CredentialActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="apply_credentials")
    async def apply_credentials(self, database: UUID) -> str:
        return str(await self._script.perform(database, "one password, 2 users"))


class FakeSweep(SweepActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="list_sweeps")
    async def list_sweeps(self) -> list[str]:
        kinds: list[str] = await self._script.perform(None, ["old things", "older things"])
        return kinds

    @activity.defn(name="sweep")
    async def sweep(self, what: str) -> SweepResult:
        swept: SweepResult = await self._script.perform(what, SweepResult(removed=3, more=False))
        return swept


class FakeUsage(UsageActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="close_usage")
    async def close_usage(self) -> ClosedPeriods:
        through = datetime(2026, 11, 20, 12, tzinfo=UTC)
        closed: ClosedPeriods = await self._script.perform(None, ClosedPeriods(through=through, rows=3))
        return closed


class FakePool(PoolActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="refill_pool")
    async def refill_pool(self, now: datetime) -> RefillResult:
        look: RefillResult = await self._script.perform(
            now, RefillResult(missing=0, retry_soon=False, summary="3 of 3 ready")
        )
        return look

    @activity.defn(name="find_unverified")
    async def find_unverified(self, now: datetime) -> list[VerifyMembers]:
        found: list[VerifyMembers] = await self._script.perform(now, [])
        return found


class FakePoolHosts(PoolHostActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="verify_members")
    async def verify_members(self, request: VerifyMembers) -> None:
        await self._script.perform(request)


class FakeReconcile(ReconcileActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="list_hosts")
    async def list_hosts(self) -> list[HostRef]:
        hosts: list[HostRef] = await self._script.perform(None, [])
        return hosts

    @activity.defn(name="reconcile_records")
    async def reconcile_records(self) -> ReconcileStep:
        reconciled: ReconcileStep = await self._script.perform(None, CLEAN)
        return reconciled


class FakeHostReconcile(HostReconcileActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="reconcile_host")
    async def reconcile_host(self, host: HostRef) -> ReconcileStep:
        reconciled: ReconcileStep = await self._script.perform(host, CLEAN)
        return reconciled


class FakeQuotas(QuotaActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="list_regions")
    async def list_regions(self) -> list[str]:
        return list(await self._script.perform(None, ["test-1"]))

    @activity.defn(name="follow_plans")
    async def follow_plans(self) -> int:
        return int(await self._script.perform(None, 0))

    @activity.defn(name="list_frozen")
    async def list_frozen(self) -> list[FrozenDatabase]:
        return list(await self._script.perform(None, []))


class FakeQuotaHosts(QuotaHostActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="measure_region")
    async def measure_region(self, request: MeasureRegion) -> RegionMeasurement:
        nothing = RegionMeasurement(databases=3, moves={}, unreachable=())
        measured: RegionMeasurement = await self._script.perform(request, nothing)
        return measured

    @activity.defn(name="reclaim_space")
    async def reclaim_space(self, database: UUID) -> None:
        await self._script.perform(database)


class FakeBackups(BackupActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="take_backup")
    async def take_backup(self, backup: UUID) -> BackupStatus:
        status: BackupStatus = await self._script.perform(backup, BackupStatus.COMPLETED)
        return status


class FakeProofs(ProofActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="prove_backup")
    async def prove_backup(self, test: ProveBackupInput) -> ProofStatus:
        status: ProofStatus = await self._script.perform(test, ProofStatus.PROVEN)
        return status


class FakeBackupRecords(BackupRecordActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="give_up_backup")
    async def give_up_backup(self, backup: UUID) -> None:
        await self._script.perform(backup)

    @activity.defn(name="give_up_proof")
    async def give_up_proof(self, test: ProveBackupInput) -> None:
        await self._script.perform(test)


class FakeFills(FillActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="fill_database")
    async def fill_database(self, restoration: UUID) -> None:
        await self._script.perform(restoration)

    @activity.defn(name="exchange_data")
    async def exchange_data(self, restoration: UUID) -> None:
        await self._script.perform(restoration)


class FakeRestores(RestoreActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="prepare_restoration")
    async def prepare_restoration(self, restoration: UUID) -> RestorationKind:
        kind: RestorationKind = await self._script.perform(restoration, RestorationKind.IN_PLACE)
        return kind

    @activity.defn(name="close_database")
    async def close_database(self, restoration: UUID) -> None:
        await self._script.perform(restoration)

    @activity.defn(name="open_database")
    async def open_database(self, restoration: UUID) -> None:
        await self._script.perform(restoration)


class FakeRestoreRecords(RestoreRecordActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="back_up_first")
    async def back_up_first(self, restoration: UUID) -> bool:
        return bool(await self._script.perform(restoration, True))

    @activity.defn(name="end_scratch")
    async def end_scratch(self, restoration: UUID) -> None:
        await self._script.perform(restoration)

    @activity.defn(name="fail_restoration")
    async def fail_restoration(self, failure: RestorationFailure) -> None:
        await self._script.perform(failure)


def control_fakes(script: Script) -> list[object]:
    """Everything that runs on the control queue."""
    return [
        fake(script)
        for fake in (
            FakeControl,
            FakePool,
            FakeSweep,
            FakeReconcile,
            FakeQuotas,
            FakeUsage,
            FakeBackupRecords,
            FakeRestoreRecords,
        )
    ]


def engine_fakes(script: Script) -> list[object]:
    """Everything that runs on an engine queue."""
    return [
        fake(script)
        for fake in (
            FakeEngine,
            FakeCredentials,
            FakePoolHosts,
            FakeHostReconcile,
            FakeApplications,
            FakeQuotaHosts,
            FakeRestores,
        )
    ]


class FakeApplications(ApplicationActivities):
    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="apply_blueprint")
    async def apply_blueprint(self, application: int) -> ApplicationResult:
        applied: ApplicationResult = await self._script.perform(application, _applied(ApplicationStatus.COMPLETED))
        return applied

    @activity.defn(name="abandon_application")
    async def abandon_application(self, application: int) -> ApplicationResult:
        applied: ApplicationResult = await self._script.perform(application, _applied(ApplicationStatus.FAILED))
        return applied


def _applied(status: ApplicationStatus) -> ApplicationResult:
    return ApplicationResult(status=status, statements_succeeded=3, statements_total=3)
