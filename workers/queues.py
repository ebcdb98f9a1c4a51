"""The configuration of a worker for each task queue: workflows, activities, and limits."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from activities.applications import ApplicationActivitiesOnHosts
from activities.backups import BackupActivitiesOnHosts, BackupActivitiesOnStore, ProofActivitiesOnHosts
from activities.control import ControlActivitiesOnStore
from activities.credentials import CredentialActivitiesOnHosts
from activities.engine import EngineActivitiesOnHosts
from activities.pool import PoolActivitiesOnHosts, PoolActivitiesOnStore
from activities.quotas import QuotaActivitiesOnHosts, QuotaActivitiesOnStore
from activities.reconcile import HostReconcileActivitiesOnHosts, ReconcileActivitiesOnStore
from activities.restores import FillActivitiesOnHosts, RestoreActivitiesOnHosts, RestoreRecordActivitiesOnStore
from activities.sweep import SweepActivitiesOnStore
from activities.usage import UsageActivitiesOnStore
from activities.webhooks import WebhookActivitiesOnStore
from app.backups.final import FinalBackups
from app.backups.policies import BackupTerms
from app.backups.restore_test_runs import RestoreTestRuns
from app.backups.storage.store import BackupStore
from app.backups.taking import BackupTaking
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_region, restore_region
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.hosts.adapters import Adapters
from app.hosts.slots import HOST_SLOTS, HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.provisioning.first_attempts import FirstAttempts
from app.quotas.plans import Plans
from app.upkeep.sweep import Retention
from workflows.registry import BACKUP_WORKFLOWS, CONTROL_WORKFLOWS, ENGINE_WORKFLOWS, WEBHOOK_WORKFLOWS

BACKUP_SLOTS = 8
RESTORE_SLOTS = 8
"""More than one team can take: its loads, its exchanges and its backups in restores."""


class WorkerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What activities need, created once for the process."""

    settings: Settings
    plans: Plans
    box: SecretBox
    adapters: Adapters
    backup_store: BackupStore
    host_slots: HostSlots = msgspec.field(default_factory=HostSlots)
    running: RunningProvisionings = msgspec.field(default_factory=RunningProvisionings)
    first_attempts: FirstAttempts = msgspec.field(default_factory=FirstAttempts)

    @property
    def final_backups(self) -> FinalBackups | None:
        return FinalBackups(self.backup_terms) if self.settings.final_backups else None

    @property
    def backup_terms(self) -> BackupTerms:
        return BackupTerms.of(self.plans, self.settings)


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True):
    implementations: tuple[Callable[[WorkerDependencies], object], ...]
    """Each creates an object whose methods are activities."""
    workflows: tuple[type[Any], ...] = ()
    sandboxed: bool = True
    """Whether each workflow run loads its module anew, without access to what is not deterministic."""
    max_activities: int
    """The maximum of concurrent activities."""
    max_workflow_tasks: int = 100
    """The maximum of concurrent workflow tasks."""
    max_connections: int
    """The maximum of connections to our own database that these activities and tasks use."""


_CONTROL = QueueConfig(
    implementations=(
        lambda tools: ControlActivitiesOnStore(tools.plans),
        lambda tools: PoolActivitiesOnStore(tools.plans, tools.box, tools.settings),
        lambda tools: SweepActivitiesOnStore(
            Retention(
                history=timedelta(seconds=tools.settings.retention_seconds),
                questions=timedelta(seconds=tools.settings.query_retention_seconds),
                operations=timedelta(seconds=tools.settings.operation_retention_seconds),
            )
        ),
        lambda _: ReconcileActivitiesOnStore(),
        lambda tools: QuotaActivitiesOnStore(tools.plans),
        lambda tools: UsageActivitiesOnStore(
            tools.settings.usage_period_seconds, timedelta(seconds=tools.settings.usage_retention_seconds)
        ),
        lambda tools: BackupActivitiesOnStore(tools.backup_terms),
        lambda tools: RestoreRecordActivitiesOnStore(tools.plans),
    ),
    workflows=CONTROL_WORKFLOWS,
    max_activities=20,
    max_connections=20,
)
_ENGINE = QueueConfig(
    implementations=(
        lambda tools: EngineActivitiesOnHosts(
            tools.plans,
            tools.box,
            tools.adapters,
            tools.host_slots,
            tools.running,
            tools.final_backups,
            tools.first_attempts,
        ),
        lambda tools: CredentialActivitiesOnHosts(tools.plans, tools.box, tools.adapters, tools.host_slots),
        lambda tools: PoolActivitiesOnHosts(tools.box, tools.adapters),
        lambda tools: HostReconcileActivitiesOnHosts(tools.plans, tools.box, tools.adapters, tools.settings.orphan_age),
        lambda tools: ApplicationActivitiesOnHosts(tools.plans, tools.box, tools.adapters),
        lambda tools: QuotaActivitiesOnHosts(tools.plans, tools.box, tools.adapters, tools.settings),
        lambda tools: RestoreActivitiesOnHosts(tools.plans, tools.box, tools.adapters, tools.host_slots),
    ),
    workflows=ENGINE_WORKFLOWS,
    # As for deliveries: the sandbox would take a quarter of this worker's processor time in a burst of creates.
    sandboxed=False,
    # Twice the maximum for one host, so that a host that doesn't answer leaves room for the others.
    max_activities=2 * HOST_SLOTS,
    # A provisioning does its work within its first workflow task.
    max_workflow_tasks=2 * HOST_SLOTS,
    # Each uses one connection for its lock and one for its work.
    max_connections=2 * (2 * HOST_SLOTS + 2 * HOST_SLOTS),
)


def _taking(tools: WorkerDependencies) -> BackupActivitiesOnHosts:
    taking = BackupTaking(tools.backup_terms, tools.box, tools.backup_store, tools.adapters, tools.host_slots)
    return BackupActivitiesOnHosts(tools.backup_terms, taking)


_BACKUPS = QueueConfig(
    implementations=(
        _taking,
        lambda tools: ProofActivitiesOnHosts(
            RestoreTestRuns(tools.backup_terms, tools.box, tools.backup_store, tools.adapters)
        ),
    ),
    workflows=BACKUP_WORKFLOWS,
    # As for provisionings.
    sandboxed=False,
    # A store that hangs, and dumps that give way for hours, take these slots and nobody else's.
    max_activities=BACKUP_SLOTS,
    # Each has one connection for a moment, one for its signs of life, and a test one that holds its scratch's lock.
    max_connections=3 * BACKUP_SLOTS,
)
_RESTORES = QueueConfig(
    implementations=(
        # For the backups that restores wait for.
        _taking,
        lambda tools: FillActivitiesOnHosts(tools.box, tools.backup_store, tools.adapters),
    ),
    max_activities=RESTORE_SLOTS,
    # Each has one connection for a moment, one for its signs of life, and two that hold its locks.
    max_connections=4 * RESTORE_SLOTS,
)
_WEBHOOKS = QueueConfig(
    # What an earlier version has begun. Deliveries themselves are made beside this, by `workers.deliveries`.
    implementations=(lambda _: WebhookActivitiesOnStore(),),
    workflows=WEBHOOK_WORKFLOWS,
    max_activities=20,
    # Used for single statements and short transactions, before and after the requests.
    max_connections=20,
)


def queue_config(queue: str) -> QueueConfig:
    """The webhook queue has deliveries; a region's backup queue has backups and restore tests, its restore queue has
    loads, its engine queue has provisionings and work on engines; the control queue has all other workflows, and the
    activities on our own database."""
    if backup_region(queue) is not None:
        return _BACKUPS
    if restore_region(queue) is not None:
        return _RESTORES
    return {CONTROL_QUEUE: _CONTROL, WEBHOOK_QUEUE: _WEBHOOKS}.get(queue, _ENGINE)
