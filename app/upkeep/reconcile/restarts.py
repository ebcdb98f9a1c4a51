"""Restarting workflows that were terminated, or that Temporal lost.

A restart is harmless if the workflow is running after all: every step takes the database's lock and checks its row
first.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from app.audit.actions import Action
from app.audit.events import OPERATOR, append
from app.audit.records import is_recorded
from app.contracts.applications import ApplyBlueprint, ApplyBlueprintInput
from app.contracts.backups import BackupDatabase, BackupDatabaseInput, BackupKind, ProveBackup, ProveBackupInput
from app.contracts.base import Engine
from app.contracts.credentials import ApplyCredentials, ApplyCredentialsInput
from app.contracts.databases import (
    ApplyAccess,
    ApplyAccessInput,
    ApplyLimits,
    ApplyLimitsInput,
    DatabaseWorkflowInput,
    Placement,
    ProvisionDatabase,
    ProvisionDatabaseInput,
)
from app.contracts.queues import (
    DATABASE_ATTRIBUTE,
    access_workflow_id,
    apply_workflow_id,
    backup_workflow_id,
    credentials_workflow_id,
    limits_workflow_id,
    provision_workflow_id,
    restarted_workflow_id,
    restore_test_workflow_id,
    restore_workflow_id,
)
from app.contracts.restores import RestoreDatabase, RestoreDatabaseInput
from app.core.ids import new_uuid
from app.databases import records
from app.databases.deletion import request_deletion
from app.operations.records import rename_workflow
from app.outbox.workflow_starts import NORMAL, request_start
from app.store.session import fetch_all, transaction

RESTART_AFTER = timedelta(minutes=5)
"""Long enough for Temporal's list to show a workflow that was started."""
_MAX = 50
"""The maximum of restarts in one run."""
_MOST_STOPPED = 10
"""The most workflows of one database that are looked at among those stopped by hand."""
_PAGE = 100
"""The number of databases in one query to Temporal."""


class _StuckDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database in transition, or a backup under test of one that was lost with our own records: `host_id` and what
    follows, up to the revisions, are None there."""

    workflow: str
    """The type of the workflow that ends this state."""
    id: int
    """The backup's where there is no database, below zero."""
    uuid: UUID
    engine: Engine
    region: str
    team_id: int | None
    host_id: int | None
    address: str | None
    engine_name: str | None
    limits_revision: int | None
    access_revision: int | None
    credentials_revision: int | None
    subject: UUID | None
    """The backup that is to be taken or tested, or the restoration, for their workflows."""
    test: int | None
    """The number of the backup's test."""
    backup_kind: BackupKind | None
    backup_priority: int | None
    application: int | None
    """The application whose turn it is, for the workflow that applies it."""
    is_dry_run: bool


_STUCK = """
WITH stuck AS (
    SELECT 'ProvisionDatabase' AS workflow, id, NULL::bigint AS application, false AS is_dry_run,
           (SELECT uuid FROM restorations r WHERE r.database_id = databases.id AND r.ended_at IS NULL) AS subject
    FROM databases
    WHERE status = 'provisioning' AND created_at < now() - $1::interval
    UNION ALL
    SELECT 'DeleteDatabase', id, NULL, false, NULL FROM databases
    WHERE status = 'deleted' AND destroyed_at IS NULL AND deleted_at < now() - $1::interval
      AND (remote_since IS NOT NULL AND revoked_at IS NULL OR destroy_at < now() - $1::interval)
    UNION ALL
    SELECT 'ApplyLimits', id, NULL, false, NULL FROM databases
    WHERE status IN ('active', 'paused') AND limits_applied < limits_revision AND updated_at < now() - $1::interval
    UNION ALL
    SELECT 'ApplyAccess', id, NULL, false, NULL FROM databases
    WHERE status IN ('active', 'paused') AND access_applied < access_revision AND restoring_at IS NULL
      AND access_changed_at < now() - $1::interval
    UNION ALL
    SELECT 'ApplyCredentials', c.database_id, NULL, false, NULL FROM (
        SELECT database_id FROM credential_rotations
        WHERE status IN ('pending', 'retiring', 'cancelling') AND changed_at < now() - $1::interval
        UNION
        SELECT database_id FROM database_users WHERE status <> 'active' AND changed_at < now() - $1::interval
    ) c
    UNION ALL
    SELECT 'ApplyBlueprint', a.database_id, a.id, a.is_dry_run, NULL
    FROM blueprint_applications a JOIN databases d ON d.id = a.database_id
    WHERE a.completed_at IS NULL AND d.status <> 'provisioning'
      AND greatest(a.created_at, a.started_at, d.provisioned_at) < now() - $1::interval
      AND NOT EXISTS (SELECT FROM blueprint_applications first
                      WHERE first.database_id = a.database_id AND first.completed_at IS NULL AND first.id < a.id)
    UNION ALL
    SELECT 'BackupDatabase', b.database_id, NULL, false, b.uuid FROM backups b
    WHERE b.status IN ('pending', 'running') AND b.admitted_at IS NOT NULL
      AND greatest(b.changed_at, b.beat_at) < now() - $1::interval
    UNION ALL
    SELECT 'ProveBackup', b.database_id, NULL, false, b.uuid FROM backups b
    WHERE b.proof_status = 'running' AND b.status = 'completed'
      AND greatest(b.proof_changed_at, b.proof_beat_at) < now() - $1::interval
    UNION ALL
    SELECT 'RestoreDatabase', r.database_id, NULL, false, r.uuid
    FROM restorations r LEFT JOIN databases c ON c.id = r.scratch_id
    WHERE r.kind IN ('in_place', 'move') AND r.created_at < now() - $1::interval
      AND (r.ended_at IS NULL
           OR r.ended_at < now() - $1::interval AND c.destroyed_at IS NULL AND c.destroy_at > now())
)
SELECT s.workflow, coalesce(d.id, -b.id) AS id, coalesce(d.uuid, b.database_uuid) AS uuid,
       coalesce(d.engine, b.engine) AS engine, coalesce(d.region, b.region) AS region,
       coalesce(d.team_id, b.team_id) AS team_id, d.host_id, h.host || ':' || h.port AS address,
       d.engine_name, d.limits_revision, d.access_revision, d.credentials_revision, s.application, s.is_dry_run,
       s.subject, b.proof_number AS test, b.kind AS backup_kind, b.priority AS backup_priority
FROM stuck s LEFT JOIN databases d ON d.id = s.id LEFT JOIN engine_hosts h ON h.id = d.host_id
     LEFT JOIN backups b ON b.uuid = s.subject
WHERE (coalesce(d.id, -b.id), s.workflow) > ($3, $4) AND NOT EXISTS (
    SELECT FROM workflow_starts p
    WHERE p.workflow = s.workflow AND p.input ->> 'database' = coalesce(d.uuid, b.database_uuid)::text
)
ORDER BY coalesce(d.id, -b.id), s.workflow LIMIT $2
"""
_BEFORE_ALL = (-(2**63), "")
"""An id and a workflow before those of all rows."""


async def restart_lost_workflows(client: Client, patience: timedelta = RESTART_AFTER) -> list[str]:
    """Requests a new workflow for each database that has been in transition for longer than `patience` and has no
    open workflow in Temporal. Returns a sentence for each. Raises what Temporal's client raises when it can't be
    reached."""
    begun: list[str] = []
    after = _BEFORE_ALL
    while len(begun) < _MAX:
        stuck = await fetch_all(_StuckDatabase, _STUCK, patience, _PAGE, *after)
        if not stuck:
            break
        after = (stuck[-1].id, stuck[-1].workflow)
        at_work = await _running_workflows(client, stuck)
        lost = [one for one in stuck if (str(one.uuid), one.workflow) not in at_work]
        begun += [await _restart(one, await _stopped_by_hand(client, one)) for one in lost[: _MAX - len(begun)]]
    return begun


async def _stopped_by_hand(client: Client, stuck: _StuckDatabase) -> list[WorkflowExecution]:
    """The database's workflows that somebody terminated or cancelled."""
    query = (
        f"ExecutionStatus IN ('Terminated', 'Canceled') AND {DATABASE_ATTRIBUTE.name} = '{stuck.uuid}'"
        f" AND WorkflowType = '{stuck.workflow}'"
    )
    return [one async for one in client.list_workflows(query, limit=_MOST_STOPPED)]


async def _running_workflows(client: Client, stuck: list[_StuckDatabase]) -> set[tuple[str, str]]:
    """Database and workflow type of the open workflows of these databases."""
    named = ", ".join(f"'{one.uuid}'" for one in stuck)
    query = f"ExecutionStatus = 'Running' AND {DATABASE_ATTRIBUTE.name} IN ({named})"
    return {
        (one.typed_search_attributes.get(DATABASE_ATTRIBUTE) or "", one.workflow_type)
        async for one in client.list_workflows(query)
    }


async def _restart(stuck: _StuckDatabase, stopped: list[WorkflowExecution]) -> str:
    # A new id: Temporal doesn't accept the id of a closed workflow again.
    async with transaction():
        await _record_stops(stuck, stopped)
        if stuck.workflow == "DeleteDatabase":
            await _restart_deletion(stuck.uuid)
        else:
            workflow, workflow_id, request = _workflow_for(stuck)
            again = restarted_workflow_id(workflow_id, new_uuid())
            await rename_workflow(workflow_id, again)
            await request_start(workflow, again, request, priority=_priority_of(stuck), relayed=True)
    return f"Began {stuck.workflow} anew for database {stuck.uuid}: nothing was at it any more."


async def _record_stops(stuck: _StuckDatabase, stopped: list[WorkflowExecution]) -> None:
    """Records in the audit log what an operator did in Temporal, once for each run that was stopped, and what the
    service does about it."""
    for one in stopped:
        if not await is_recorded(stuck.team_id, "workflow", one.run_id):
            status = "terminated" if one.status is WorkflowExecutionStatus.TERMINATED else "cancelled"
            closed_at = None if one.close_time is None else one.close_time.isoformat()
            changes = {"workflow": (None, one.id), "status": ("running", status), "closed_at": (None, closed_at)}
            subject = ("workflow", one.run_id)
            await append(Action.WORKFLOW_STOP, subject, team_id=stuck.team_id, changes=changes, actor=OPERATOR)
    restarted = {"workflow": (None, stuck.workflow)}
    await append(Action.WORKFLOW_RESTART, ("database", stuck.uuid), team_id=stuck.team_id, changes=restarted)


async def _restart_deletion(database: UUID) -> None:
    """Requests the workflow of a deletion. Its id follows from the row, so that whoever changes the end of the grace
    period can signal the workflow."""
    record = await records.find_for_update(database)
    if record is not None and record.destroy_at is not None and record.destroyed_at is None:
        await request_deletion(record, destroy_at=record.destroy_at, priority=NORMAL, relayed=True)


def _priority_of(stuck: _StuckDatabase) -> int:
    """The priority of the new workflow. A backup keeps its own: somebody may wait for it, or nobody."""
    if stuck.workflow != "BackupDatabase" or stuck.backup_priority is None:
        return NORMAL
    return stuck.backup_priority


def _workflow_for(stuck: _StuckDatabase) -> tuple[Any, str, DatabaseWorkflowInput]:
    """The workflow, its original id, and its input."""
    uuid = stuck.uuid
    about: dict[str, Any] = {
        "database": uuid,
        "engine": stuck.engine,
        "region": stuck.region,
        "team_id": stuck.team_id,
    }
    match stuck.workflow:
        case "ProvisionDatabase":
            assert stuck.host_id is not None, "it is placed"
            assert stuck.address is not None, "its host has one"
            assert stuck.engine_name is not None, "it is placed"
            placement = Placement(host_id=stuck.host_id, address=stuck.address, name=stuck.engine_name)
            request = ProvisionDatabaseInput(**about, placement=placement, restoration=stuck.subject)
            return ProvisionDatabase, provision_workflow_id(uuid), request
        case "ApplyBlueprint":
            assert stuck.application is not None, "it applies one"
            applying = ApplyBlueprintInput(**about, application=stuck.application)
            return ApplyBlueprint, apply_workflow_id(stuck.application, dry_run=stuck.is_dry_run), applying
        case "BackupDatabase":
            assert stuck.subject is not None, "it takes one"
            in_restore = stuck.backup_kind is BackupKind.BEFORE_RESTORE
            taking = BackupDatabaseInput(**about, backup=stuck.subject, in_restore=in_restore)
            return BackupDatabase, backup_workflow_id(stuck.subject), taking
        case "ProveBackup":
            assert stuck.subject is not None, "it tests one"
            assert stuck.test is not None, "it was begun"
            testing = ProveBackupInput(**about, backup=stuck.subject, number=stuck.test)
            return ProveBackup, restore_test_workflow_id(stuck.subject, stuck.test), testing
        case "RestoreDatabase":
            assert stuck.subject is not None, "it carries one out"
            restoring = RestoreDatabaseInput(**about, restoration=stuck.subject)
            return RestoreDatabase, restore_workflow_id(stuck.subject), restoring
        case "ApplyLimits":
            revision = stuck.limits_revision
            assert revision is not None, "it is of a database"
            return ApplyLimits, limits_workflow_id(uuid, revision), ApplyLimitsInput(**about, revision=revision)
        case "ApplyCredentials":
            revision = stuck.credentials_revision
            assert revision is not None, "it is of a database"
            changing = ApplyCredentialsInput(**about, revision=revision)
            return ApplyCredentials, credentials_workflow_id(uuid, revision), changing
        case _:
            revision = stuck.access_revision
            assert revision is not None, "it is of a database"
            return ApplyAccess, access_workflow_id(uuid, revision), ApplyAccessInput(**about, revision=revision)
