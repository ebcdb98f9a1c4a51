"""Workflows that nothing works on any more, begun anew: one was terminated, or Temporal lost what it had accepted.

Harmless where one is at work after all: every step takes the database's lock, and looks at its row first.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from temporalio.client import Client

from app.contracts.base import DatabaseStatus, Engine
from app.contracts.databases import (
    ApplyLimits,
    ApplyLimitsInput,
    DatabaseWorkflowInput,
    DeleteDatabase,
    DeleteDatabaseInput,
    Placement,
    ProvisionDatabase,
    ProvisionDatabaseInput,
)
from app.contracts.queues import (
    DATABASE_ATTRIBUTE,
    delete_workflow_id,
    limits_workflow_id,
    provision_workflow_id,
    revived_workflow_id,
)
from app.core.ids import new_uuid
from app.dispatch.starts import NORMAL, request_start
from app.store.session import fetch_all, transaction

LONG_STUCK = timedelta(minutes=5)
"""Long enough for Temporal's list to know of a workflow that was started."""
_MOST = 50
"""In one run."""


class _Stuck(msgspec.Struct, frozen=True, kw_only=True):
    uuid: UUID
    engine: Engine
    region: str
    team_id: int | None
    status: DatabaseStatus
    host_id: int
    address: str
    engine_name: str
    destroy_at: datetime | None
    limits_revision: int


_STUCK = """
SELECT d.uuid, d.engine, d.region, d.team_id, d.status, d.host_id, h.host || ':' || h.port AS address, d.engine_name,
       d.destroy_at, d.limits_revision
FROM databases d JOIN engine_hosts h ON h.id = d.host_id
WHERE d.destroyed_at IS NULL AND (
    d.status = 'provisioning' AND d.created_at < now() - $1::interval
    OR d.status = 'deleted' AND d.deleted_at < now() - $1::interval
       AND (d.remote_since IS NOT NULL AND d.revoked_at IS NULL OR d.destroy_at < now() - $1::interval)
    OR d.status = 'active' AND d.limits_applied < d.limits_revision AND d.updated_at < now() - $1::interval
) AND NOT EXISTS (SELECT FROM workflow_starts s WHERE s.input ->> 'database' = d.uuid::text)
ORDER BY d.id LIMIT $2
"""


async def revive(client: Client, patience: timedelta = LONG_STUCK) -> list[str]:
    """Asks for the workflow of each database that has been between two states for longer than `patience`, where
    Temporal has none open. A sentence for each. Raises what Temporal's client raises when it can't be reached."""
    stuck = await fetch_all(_Stuck, _STUCK, patience, _MOST)
    if not stuck:
        return []
    at_work = await _at_work(client, stuck)
    return [await _begin(one) for one in stuck if (str(one.uuid), _name(_workflow(one))) not in at_work]


async def _at_work(client: Client, stuck: list[_Stuck]) -> set[tuple[str, str]]:
    """Database and type of the open workflows about any of these."""
    named = ", ".join(f"'{one.uuid}'" for one in stuck)
    query = f"ExecutionStatus = 'Running' AND {DATABASE_ATTRIBUTE.name} IN ({named})"
    return {
        (one.typed_search_attributes.get(DATABASE_ATTRIBUTE) or "", one.workflow_type)
        async for one in client.list_workflows(query)
    }


async def _begin(stuck: _Stuck) -> str:
    workflow = _workflow(stuck)
    workflow_id, request = _request(stuck)
    async with transaction():
        # Under an id of its own: Temporal doesn't take that of a closed one again.
        await request_start(
            workflow, revived_workflow_id(workflow_id, new_uuid()), request, priority=NORMAL, relayed=True
        )
    return f"Began {_name(workflow)} anew for database {stuck.uuid}: nothing was at it any more."


def _workflow(stuck: _Stuck) -> Any:
    by_status = {DatabaseStatus.PROVISIONING: ProvisionDatabase, DatabaseStatus.DELETED: DeleteDatabase}
    return by_status.get(stuck.status, ApplyLimits)


def _name(workflow: Any) -> str:
    return str(workflow.__temporal_workflow_definition.name)


def _request(stuck: _Stuck) -> tuple[str, DatabaseWorkflowInput]:
    """The id that it was first begun under, and its input."""
    about: dict[str, Any] = {
        "database": stuck.uuid,
        "engine": stuck.engine,
        "region": stuck.region,
        "team_id": stuck.team_id,
    }
    if stuck.status is DatabaseStatus.PROVISIONING:
        placement = Placement(host_id=stuck.host_id, address=stuck.address, name=stuck.engine_name)
        return provision_workflow_id(stuck.uuid), ProvisionDatabaseInput(**about, placement=placement)
    if stuck.status is DatabaseStatus.DELETED:
        assert stuck.destroy_at is not None, "a deletion says when"
        request = DeleteDatabaseInput(**about, destroy_at=stuck.destroy_at, cancel_provisioning=False)
        return delete_workflow_id(stuck.uuid), request
    revision = stuck.limits_revision
    return limits_workflow_id(stuck.uuid, revision), ApplyLimitsInput(**about, revision=revision)
