"""Every workflow and every way it ends: what is asked, what the activities answer, and what must follow.

The tests play them; `tests.workflows.record` plays them too, and keeps their histories.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import msgspec
from temporalio.client import WorkflowExecutionStatus

from app.contracts.applications import ApplicationResult, ApplicationStatus, ApplyBlueprint, ApplyBlueprintInput
from app.contracts.backups import (
    BACKUP_STORE_UNAVAILABLE,
    BackupDatabase,
    BackupDatabaseInput,
    BackupStatus,
    ProveBackup,
    ProveBackupInput,
)
from app.contracts.base import Engine
from app.contracts.credentials import ApplyCredentials, ApplyCredentialsInput
from app.contracts.databases import (
    ApplyAccess,
    ApplyAccessInput,
    ApplyLimits,
    ApplyLimitsInput,
    CloseRemnant,
    DeleteDatabase,
    DeleteDatabaseInput,
    Placement,
    ProvisionDatabase,
    ProvisionDatabaseInput,
    RemoveRemnant,
    RemoveRemnantInput,
)
from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN, NOT_WANTED, STORE_UNAVAILABLE
from app.contracts.pool import RefillPool, RefillResult, VerifyMembers
from app.contracts.quotas import EnforceQuotas, FrozenDatabase, ReclaimSpace, RegionMeasurement
from app.contracts.reconcile import HostRef, Reconcile, ReconcileStep
from app.contracts.restores import (
    BACKUP_DAMAGED,
    SLOTS_TAKEN,
    SOURCE_AWAY,
    RestorationKind,
    RestoreDatabase,
    RestoreDatabaseInput,
)
from app.contracts.retries import CANCEL
from app.contracts.upkeep import Sweep, SweepResult
from app.contracts.usage import ClosedPeriods, CloseUsage
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import SHORT_TASK, Scenario
from tests.workflows.webhook_scenarios import WEBHOOK_SCENARIOS
from workflows.backup_database import MOST_ROUNDS
from workflows.prove_backup import MOST_ROUNDS as MOST_TESTS

DATABASE = UUID("6f1f3a52-5f0c-4a55-9f0e-0d6b8f6f2a11")
REGION = "test-1"
FIRST = Placement(host_id=1, address="db-1.example.com:5432", name="tfirst")
SECOND = Placement(host_id=2, address="db-2.example.com:5432", name="tfirst")
RENAMED = Placement(host_id=1, address="db-1.example.com:5432", name="trenamed")
PAST = datetime(2026, 1, 1, tzinfo=UTC)

SUBJECT: dict[str, Any] = {"database": DATABASE, "engine": Engine.POSTGRES, "region": REGION, "team_id": 7}
PROVISION = ProvisionDatabaseInput(**SUBJECT, placement=FIRST)
RESTORATION = uuid5(DATABASE, "restoration")
FILLING = ProvisionDatabaseInput(**SUBJECT, placement=FIRST, restoration=RESTORATION)
RESTORE = RestoreDatabaseInput(**SUBJECT, restoration=RESTORATION)
DELETE = DeleteDatabaseInput(**SUBJECT, destroy_at=PAST, cancel_provisioning=False)
CANCELLING_DELETE = DeleteDatabaseInput(**SUBJECT, destroy_at=PAST, cancel_provisioning=True)
LIMITS = ApplyLimitsInput(**SUBJECT, revision=1)
ACCESS = ApplyAccessInput(**SUBJECT, revision=1)
MEASURED = RegionMeasurement(
    databases=3, moves={"frozen": 1, "paused_runtime": 2}, unreachable=("db-2.example.com:5432",)
)
FROZEN = [FrozenDatabase(region=REGION, database=database) for database in (DATABASE, uuid5(DATABASE, "another"))]
UNVERIFIED = VerifyMembers(region=REGION, before=PAST)
CREDENTIALS = ApplyCredentialsInput(**SUBJECT, revision=1)
REMNANT = RemoveRemnantInput(**SUBJECT, host_id=1, name="tfirst")
BACKUP = BackupDatabaseInput(**SUBJECT, backup=uuid5(DATABASE, "backup"))
TEST = ProveBackupInput(**SUBJECT, backup=BACKUP.backup, number=1)
APPLICATION = ApplyBlueprintInput(**SUBJECT, application=12)

LOCAL_ATTEMPTS = 1
"""Attempts of a provisioning as a local activity, before the first round."""
ROUND = 3
"""Attempts in the first round of an engine's step."""
UPKEEP_ATTEMPTS = 5
"""Of a step of a scheduled run."""
CANCELED = WorkflowExecutionStatus.CANCELED


def _moved_to(placement: Placement) -> Callable[[], Placement]:
    return lambda: placement


def _moves(kind: str, placement: Placement, *, final: bool = False) -> Callable[[], Script]:
    attempts = 1 if final else LOCAL_ATTEMPTS + ROUND
    return lambda: Script(
        {"create_database": [fails(kind, final=final)] * attempts, "replace_host": [_moved_to(placement)]}
    )


def _once(activity: str, kind: str, *, final: bool = False, times: int = 1) -> Callable[[], Script]:
    return lambda: Script({activity: [fails(kind, final=final)] * times})


def _swept(removed: int, *, more: bool = False) -> Callable[[], SweepResult]:
    return lambda: SweepResult(removed=removed, more=more)


def _short() -> RefillResult:
    return RefillResult(missing=2, retry_soon=True, summary="1 of 3 ready")


def _hosts(*regions: str) -> Callable[[], list[HostRef]]:
    return lambda: [
        HostRef(host_id=number, engine=Engine.POSTGRES, region=region, address=f"db-{number}.example.com:5432")
        for number, region in enumerate(regions, 1)
    ]


MESSY = ReconcileStep(findings={"some_rule": 1}, messages=["some_rule: something is wrong"], repairs=["Put right."])


def _applied(status: ApplicationStatus, succeeded: int) -> ApplicationResult:
    return ApplicationResult(status=status, statements_succeeded=succeeded, statements_total=3)


MADE = ["create_database"]
FILLED = ["create_database", "fill_database", "open_database"]
IN_PLACE = [
    "prepare_restoration",
    "fill_database",
    "close_database",
    "back_up_first",
    "exchange_data",
    "open_database",
    "end_scratch",
]
LOOKED = ["find_unverified", "refill_pool"]
LISTED = ["follow_plans", "list_regions"]
DELETED = ["revoke_access", "look_at_grace", "destroy_database", "record_destroyed"]

SCENARIOS = {
    "provision-active": Scenario(ProvisionDatabase, PROVISION, Script, MADE, details=f"Active on {FIRST.address}"),
    "provision-moved": Scenario(
        ProvisionDatabase,
        PROVISION,
        _moves(HOST_UNAVAILABLE, SECOND),
        [*["create_database"] * (LOCAL_ATTEMPTS + ROUND), "replace_host", *MADE],
        details=f"Active on {SECOND.address}",
    ),
    "provision-refused-once": Scenario(
        ProvisionDatabase, PROVISION, _once("create_database", ENGINE_REFUSED), ["create_database", *MADE]
    ),
    "provision-name-taken": Scenario(
        ProvisionDatabase,
        PROVISION,
        _moves(NAME_TAKEN, RENAMED, final=True),
        ["create_database", "replace_host", *MADE],
    ),
    "provision-nowhere-else": Scenario(
        ProvisionDatabase,
        PROVISION,
        _once("create_database", HOST_UNAVAILABLE, times=LOCAL_ATTEMPTS + ROUND),
        [*["create_database"] * (LOCAL_ATTEMPTS + ROUND), "replace_host", *MADE],
    ),
    "provision-store-away": Scenario(
        ProvisionDatabase,
        PROVISION,
        _once("create_database", STORE_UNAVAILABLE, times=LOCAL_ATTEMPTS + ROUND),
        [*["create_database"] * (LOCAL_ATTEMPTS + ROUND), *MADE],
    ),
    "provision-not-wanted": Scenario(
        ProvisionDatabase,
        PROVISION,
        _once("create_database", NOT_WANTED, final=True),
        ["create_database"],
        details="the deletion cleans up",
    ),
    "provision-cancelled": Scenario(
        ProvisionDatabase,
        PROVISION,
        lambda: Script(hangs=frozenset({"create_database"})),
        ["create_database", "abandon_provisioning", "destroy_database", "record_destroyed"],
        ends=CANCELED,
        details="nothing is left of it",
        cancel=True,
        task_timeout=SHORT_TASK,
    ),
    "delete-at-once": Scenario(DeleteDatabase, DELETE, Script, DELETED, details="nothing is left on the host"),
    "delete-nothing-to-cancel": Scenario(DeleteDatabase, CANCELLING_DELETE, Script, DELETED),
    "delete-host-away": Scenario(
        DeleteDatabase,
        DELETE,
        _once("revoke_access", HOST_UNAVAILABLE, times=ROUND),
        [*["revoke_access"] * ROUND, *DELETED],
    ),
    "delete-recorded-late": Scenario(
        DeleteDatabase,
        DELETE,
        _once("look_at_grace", STORE_UNAVAILABLE, times=2),
        ["revoke_access", *["look_at_grace"] * 2, *DELETED[1:]],
    ),
    "delete-undeleted": Scenario(
        DeleteDatabase,
        DELETE,
        _once("look_at_grace", NOT_WANTED, final=True),
        DELETED[:2],
        details="Undeleted; its data and credentials stay.",
    ),
    "delete-undeleted-at-the-end": Scenario(
        DeleteDatabase,
        DELETE,
        _once("destroy_database", NOT_WANTED, final=True),
        DELETED[:3],
        details="Undeleted; its data and credentials stay.",
    ),
    "limits-in-force": Scenario(
        ApplyLimits, LIMITS, Script, ["apply_limits", "record_limits_applied"], details="In force"
    ),
    "limits-of-a-deleted-one": Scenario(
        ApplyLimits,
        LIMITS,
        _once("apply_limits", NOT_WANTED, final=True),
        ["apply_limits"],
        details="nothing to limit",
    ),
    "access-in-force": Scenario(ApplyAccess, ACCESS, Script, ["apply_access"], details="In force: paused (operator)"),
    "access-host-away": Scenario(
        ApplyAccess,
        ACCESS,
        _once("apply_access", HOST_UNAVAILABLE, times=ROUND),
        ["apply_access"] * (ROUND + 1),
    ),
    "access-to-a-deleted-one": Scenario(
        ApplyAccess,
        ACCESS,
        _once("apply_access", NOT_WANTED, final=True),
        ["apply_access"],
        details="its deletion ends all access",
    ),
    "credentials-in-force": Scenario(
        ApplyCredentials,
        CREDENTIALS,
        Script,
        ["apply_credentials"],
        details="In force: one password, 2 users.",
    ),
    "credentials-host-away": Scenario(
        ApplyCredentials,
        CREDENTIALS,
        _once("apply_credentials", HOST_UNAVAILABLE, times=ROUND),
        ["apply_credentials"] * (ROUND + 1),
    ),
    "credentials-of-a-destroyed-one": Scenario(
        ApplyCredentials,
        CREDENTIALS,
        _once("apply_credentials", NOT_WANTED, final=True),
        ["apply_credentials"],
        details="Nothing is left of the database",
    ),
    "backup-taken": Scenario(BackupDatabase, BACKUP, Script, ["take_backup"], details="The backup is completed."),
    "backup-refused": Scenario(
        BackupDatabase,
        BACKUP,
        lambda: Script({"take_backup": [lambda: BackupStatus.FAILED]}),
        ["take_backup"],
        details="The backup is failed.",
    ),
    "backup-store-away": Scenario(
        BackupDatabase,
        BACKUP,
        _once("take_backup", BACKUP_STORE_UNAVAILABLE),
        ["take_backup"] * 2,
        details="The backup is completed.",
    ),
    "backup-given-up": Scenario(
        BackupDatabase,
        msgspec.structs.replace(BACKUP, round=MOST_ROUNDS - 1),
        _once("take_backup", HOST_UNAVAILABLE),
        ["take_backup", "give_up_backup"],
        details="The backup is failed.",
    ),
    "backup-of-a-deleted-one": Scenario(
        BackupDatabase,
        BACKUP,
        _once("take_backup", NOT_WANTED, final=True),
        ["take_backup"],
        details="It is over",
    ),
    "backup-cancelled": Scenario(
        BackupDatabase,
        BACKUP,
        lambda: Script(hangs=frozenset({"take_backup"})),
        ["take_backup"],
        signal=CANCEL,
        details="It is over",
    ),
    "backup-proven": Scenario(ProveBackup, TEST, Script, ["prove_backup"], details="The proof is proven."),
    "backup-test-without-room": Scenario(
        ProveBackup,
        msgspec.structs.replace(TEST, round=MOST_TESTS - 2),
        _once("prove_backup", HOST_UNAVAILABLE, times=2),
        ["prove_backup"] * 2 + ["give_up_proof"],
        details="could not be run",
    ),
    "backup-test-of-a-deleted-one": Scenario(
        ProveBackup, TEST, _once("prove_backup", NOT_WANTED, final=True), ["prove_backup"], details="It is over"
    ),
    "provision-from-a-source": Scenario(ProvisionDatabase, FILLING, Script, FILLED, details="Active on"),
    "provision-source-away": Scenario(
        ProvisionDatabase,
        FILLING,
        _once("fill_database", SOURCE_AWAY, times=ROUND),
        ["create_database", *["fill_database"] * ROUND, *FILLED],
        details="Active on",
    ),
    "provision-waits-for-a-slot": Scenario(
        ProvisionDatabase,
        FILLING,
        _once("fill_database", SLOTS_TAKEN, final=True),
        ["create_database", "fill_database", *FILLED],
        details=f"Active on {FIRST.address}",
    ),
    "provision-host-lost-while-filling": Scenario(
        ProvisionDatabase,
        FILLING,
        lambda: Script({"fill_database": [fails(HOST_UNAVAILABLE)] * ROUND * 2, "replace_host": [_moved_to(SECOND)]}),
        [
            *["create_database", *["fill_database"] * ROUND] * 2,
            "replace_host",
            *FILLED,
        ],
        details=f"Active on {SECOND.address}",
    ),
    "provision-source-damaged": Scenario(
        ProvisionDatabase,
        FILLING,
        _once("fill_database", BACKUP_DAMAGED, final=True),
        ["create_database", "fill_database", "fail_restoration", "destroy_database", "record_destroyed"],
        details="Nothing is left of it",
    ),
    "restore-in-place": Scenario(RestoreDatabase, RESTORE, Script, IN_PLACE, details="Restored"),
    "restore-waits-for-its-backup": Scenario(
        RestoreDatabase,
        RESTORE,
        lambda: Script({"back_up_first": [lambda: False, lambda: False]}),
        [*IN_PLACE[:3], *["back_up_first"] * 3, *IN_PLACE[4:]],
        details="Restored",
    ),
    "restore-waits-for-a-slot": Scenario(
        RestoreDatabase,
        RESTORE,
        _once("exchange_data", SLOTS_TAKEN, final=True),
        [*IN_PLACE[:4], "exchange_data", *IN_PLACE[4:]],
        details="Restored",
    ),
    "restore-store-away": Scenario(
        RestoreDatabase,
        RESTORE,
        _once("exchange_data", BACKUP_STORE_UNAVAILABLE, times=ROUND),
        [*IN_PLACE[:4], *["exchange_data"] * ROUND, *IN_PLACE[4:]],
        details="Restored",
    ),
    "restore-damaged": Scenario(
        RestoreDatabase,
        RESTORE,
        _once("fill_database", BACKUP_DAMAGED, final=True),
        [*IN_PLACE[:2], "fail_restoration", "end_scratch"],
        details="The data is what it was before",
    ),
    "restore-cancelled": Scenario(
        RestoreDatabase,
        RESTORE,
        lambda: Script(hangs=frozenset({"fill_database"})),
        [*IN_PLACE[:2], "end_scratch"],
        signal=CANCEL,
        details="Ended before it was done",
    ),
    "restore-not-wanted": Scenario(
        RestoreDatabase,
        RESTORE,
        _once("close_database", NOT_WANTED, final=True),
        [*IN_PLACE[:3], "end_scratch"],
        details="Ended before it was done",
    ),
    "restore-not-wanted-while-it-waits": Scenario(
        RestoreDatabase,
        RESTORE,
        _once("back_up_first", NOT_WANTED, final=True),
        [*IN_PLACE[:4], "end_scratch"],
        details="Ended before it was done",
    ),
    "restore-on-another-host": Scenario(
        RestoreDatabase,
        RESTORE,
        lambda: Script({"prepare_restoration": [lambda: RestorationKind.MOVE]}),
        ["prepare_restoration", "fill_database", "open_database", "end_scratch"],
        details="Restored",
    ),
    "restore-on-another-host-damaged": Scenario(
        RestoreDatabase,
        RESTORE,
        lambda: Script(
            {
                "prepare_restoration": [lambda: RestorationKind.MOVE],
                "fill_database": [fails(BACKUP_DAMAGED, final=True)],
            }
        ),
        ["prepare_restoration", "fill_database", "fail_restoration", "end_scratch"],
        details="The database stays closed",
    ),
    "quotas-kept": Scenario(
        EnforceQuotas, None, Script, [*LISTED, "measure_region"], details="test-1: 3 databases measured"
    ),
    "quotas-broken": Scenario(
        EnforceQuotas,
        None,
        lambda: Script({"follow_plans": [lambda: 4], "measure_region": [lambda: MEASURED]}),
        [*LISTED, "measure_region"],
        details="3 databases measured; 1 frozen; 2 paused for runtime; not measured: db-2.example.com:5432",
    ),
    "quotas-store-away": Scenario(
        EnforceQuotas,
        None,
        _once("measure_region", STORE_UNAVAILABLE),
        [*LISTED, "measure_region"],
        details="test-1: left to the next run: as the script says",
    ),
    "quotas-nothing-begun": Scenario(
        EnforceQuotas,
        None,
        _once("follow_plans", STORE_UNAVAILABLE, times=UPKEEP_ATTEMPTS),
        ["follow_plans"] * UPKEEP_ATTEMPTS,
        details="Left to the next run: as the script says",
    ),
    "reclaim-nothing": Scenario(ReclaimSpace, None, Script, ["list_frozen"], details="No frozen database"),
    "reclaim-one-fails": Scenario(
        ReclaimSpace,
        None,
        lambda: Script({"list_frozen": [lambda: FROZEN], "reclaim_space": [fails(HOST_UNAVAILABLE)]}),
        ["list_frozen", *["reclaim_space"] * 2],
        details="test-1: 1 databases looked at\n\ntest-1: database",
    ),
    "reclaim-store-away": Scenario(
        ReclaimSpace,
        None,
        _once("list_frozen", STORE_UNAVAILABLE, times=UPKEEP_ATTEMPTS),
        ["list_frozen"] * UPKEEP_ATTEMPTS,
        details="Left to the next run: as the script says",
    ),
    "remnant-removed": Scenario(RemoveRemnant, REMNANT, Script, ["remove_remnant"], details="Removed"),
    "remnant-host-away": Scenario(
        RemoveRemnant,
        REMNANT,
        _once("remove_remnant", HOST_UNAVAILABLE, times=ROUND),
        [*["remove_remnant"] * (ROUND + 1)],
    ),
    "remnant-closed": Scenario(CloseRemnant, REMNANT, Script, ["close_remnant"], details="Closed; its data stays"),
    "pool-full": Scenario(RefillPool, None, Script, LOOKED, details="3 of 3 ready"),
    "pool-short": Scenario(
        RefillPool,
        None,
        lambda: Script({"find_unverified": [lambda: [UNVERIFIED]], "refill_pool": [_short] * 2}),
        ["find_unverified", "verify_members", *["refill_pool"] * 3],
        details="3 of 3 ready",
    ),
    "pool-not-verified": Scenario(
        RefillPool,
        None,
        lambda: Script({"find_unverified": [lambda: [UNVERIFIED]], "verify_members": [fails(STORE_UNAVAILABLE)]}),
        ["find_unverified", "verify_members", "refill_pool"],
        details="3 of 3 ready",
    ),
    "pool-store-away": Scenario(
        RefillPool,
        None,
        _once("refill_pool", STORE_UNAVAILABLE, times=UPKEEP_ATTEMPTS),
        ["find_unverified", *["refill_pool"] * UPKEEP_ATTEMPTS],
        details="Left to the next run: as the script says",
    ),
    "sweep-clean": Scenario(
        Sweep,
        None,
        Script,
        ["list_sweeps", "sweep", "sweep"],
        details="Removed 3 old things.\n\nRemoved 3 older things.",
    ),
    "sweep-in-steps": Scenario(
        Sweep,
        None,
        lambda: Script({"sweep": [_swept(500, more=True), _swept(500, more=True), _swept(1)]}),
        ["list_sweeps", *["sweep"] * 4],
        details="Removed 1001 old things.",
    ),
    "sweep-failing": Scenario(
        Sweep,
        None,
        _once("sweep", STORE_UNAVAILABLE, times=UPKEEP_ATTEMPTS),
        ["list_sweeps", *["sweep"] * UPKEEP_ATTEMPTS, "sweep"],
        details="then failed: as the script says.\n\nRemoved 3 older things.",
    ),
    "usage-closed": Scenario(
        CloseUsage,
        None,
        Script,
        ["close_usage"],
        details="Closed through 2026-11-20T12:00:00+00:00, 3 rows.",
    ),
    "usage-not-over": Scenario(
        CloseUsage,
        None,
        lambda: Script({"close_usage": [lambda: ClosedPeriods(through=None, rows=0)]}),
        ["close_usage"],
        details="No period could be closed.",
    ),
    "usage-store-away": Scenario(
        CloseUsage,
        None,
        _once("close_usage", STORE_UNAVAILABLE, times=UPKEEP_ATTEMPTS),
        ["close_usage"] * UPKEEP_ATTEMPTS,
        details="Left to the next run: as the script says",
    ),
    "reconcile-clean": Scenario(
        Reconcile,
        None,
        lambda: Script({"list_hosts": [_hosts(REGION)]}),
        ["list_hosts", "reconcile_records", "reconcile_host"],
        details="Everything is as it must be",
    ),
    "reconcile-findings": Scenario(
        Reconcile,
        None,
        lambda: Script(
            {
                "list_hosts": [_hosts(REGION, REGION)],
                "reconcile_records": [lambda: MESSY],
                "reconcile_host": [lambda: MESSY],
            }
        ),
        ["list_hosts", "reconcile_records", *["reconcile_host"] * 2],
        details="Done.\n\nPut right.\n\nPut right.\n\nsome_rule: something is wrong",
    ),
    "reconcile-host-failing": Scenario(
        Reconcile,
        None,
        lambda: Script({"list_hosts": [_hosts(REGION)]}, forever={"reconcile_host": fails(STORE_UNAVAILABLE)}),
        ["list_hosts", "reconcile_records", *["reconcile_host"] * 2],
        details="Couldn't look at db-1.example.com:5432: as the script says.",
    ),
    "reconcile-hosts-unknown": Scenario(
        Reconcile,
        None,
        lambda: Script(forever={"list_hosts": fails(STORE_UNAVAILABLE)}),
        [*["list_hosts"] * UPKEEP_ATTEMPTS, "reconcile_records"],
        details="Couldn't look at the list of hosts: as the script says.",
    ),
    "sweep-kinds-unknown": Scenario(
        Sweep,
        None,
        lambda: Script(forever={"list_sweeps": fails(STORE_UNAVAILABLE)}),
        ["list_sweeps"] * UPKEEP_ATTEMPTS,
        details="Couldn't look what can be swept: as the script says.",
    ),
    "reconcile-records-failing": Scenario(
        Reconcile,
        None,
        lambda: Script({"list_hosts": [_hosts(REGION)]}, forever={"reconcile_records": fails(STORE_UNAVAILABLE)}),
        ["list_hosts", *["reconcile_records"] * UPKEEP_ATTEMPTS, "reconcile_host"],
        details="Couldn't look at our own records: as the script says.",
    ),
    **WEBHOOK_SCENARIOS,
    "apply-completed": Scenario(
        ApplyBlueprint, APPLICATION, Script, ["apply_blueprint"], details="Completed: 3 of 3 statements"
    ),
    "apply-rolled-back": Scenario(
        ApplyBlueprint,
        APPLICATION,
        lambda: Script({"apply_blueprint": [lambda: _applied(ApplicationStatus.ROLLED_BACK, 3)]}),
        ["apply_blueprint"],
        details="nothing of them is left",
    ),
    "apply-failed": Scenario(
        ApplyBlueprint,
        APPLICATION,
        lambda: Script({"apply_blueprint": [lambda: _applied(ApplicationStatus.FAILED, 1)]}),
        ["apply_blueprint"],
        details="Failed: 1 of 3 statements",
    ),
    "apply-host-away": Scenario(
        ApplyBlueprint,
        APPLICATION,
        _once("apply_blueprint", HOST_UNAVAILABLE, times=ROUND),
        ["apply_blueprint"] * (ROUND + 1),
    ),
    "apply-unknown": Scenario(
        ApplyBlueprint,
        APPLICATION,
        _once("apply_blueprint", NOT_WANTED, final=True),
        ["apply_blueprint"],
        details="no such application",
    ),
    "apply-cancelled": Scenario(
        ApplyBlueprint,
        APPLICATION,
        lambda: Script(hangs=frozenset({"apply_blueprint"})),
        ["apply_blueprint", "abandon_application"],
        ends=CANCELED,
        details="Cancelled. Failed",
        cancel=True,
    ),
    "apply-told-to-stop": Scenario(
        ApplyBlueprint,
        APPLICATION,
        lambda: Script(hangs=frozenset({"apply_blueprint"})),
        ["apply_blueprint", "abandon_application"],
        details="Cancelled. Failed",
        signal=CANCEL,
    ),
}

GRACE = timedelta(hours=24)
