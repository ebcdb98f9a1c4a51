"""Turns the rows of all teams into what operators see of them."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from app.audit.chain import Seal
from app.backups.restores.evacuation import Evacuated
from app.core.ids import find_uuid
from app.core.settings import Settings
from app.core.temporal import page_of
from app.databases.pool.targets import PoolFilling
from app.databases.records import names_of
from app.hosts.listing import HostSummary
from app.operations.inventory import OperatorRecord
from app.operations.views import view
from app.operators.schemas import (
    EvacuatedDatabase,
    EvacuationView,
    FindingView,
    HostRoom,
    HostView,
    OperatorOperationView,
    PoolView,
    SealView,
)
from app.upkeep.reconcile.findings import StoredFinding


def host_view(host: HostSummary) -> HostView:
    databases, connections = host.capacity - host.databases, host.connection_room - host.connections
    return HostView(
        id=host.id,
        db_type=host.engine,
        flavour=host.flavour,
        version=host.version,
        region=host.region,
        host=host.host,
        port=host.port,
        databases=host.databases,
        capacity=host.capacity,
        connections=host.connections,
        connection_capacity=host.connection_capacity,
        connection_overcommit=host.connection_overcommit,
        storage_gb=host.storage_gb,
        connection_room=host.connection_room,
        open_connections=host.open_connections,
        connections_short=host.connections_short,
        load=round(max(host.databases / host.capacity, host.connections / host.connection_room), 4),
        room=HostRoom(databases=max(0, databases), connections=max(0, connections)),
        draining=host.draining,
        failure=host.sick_reason,
        tls=host.tls,
        ca=host.ca,
        extensions=host.extensions,
    )


def evacuation_view(host_id: int, found: Sequence[Evacuated]) -> EvacuationView:
    return EvacuationView(
        host_id=host_id,
        databases=[
            EvacuatedDatabase(
                database_uuid=one.database,
                name=one.name,
                team=one.team,
                status=one.status,
                host=one.host,
                backup_uuid=one.backup,
                data_of=one.data_of,
                age_seconds=one.age_seconds,
            )
            for one in found
        ],
    )


def pool_view(pool: PoolFilling) -> PoolView:
    return PoolView(
        db_type=pool.engine,
        region=pool.region,
        size=pool.size,
        size_from="operator" if pool.chosen else "setting",
        ready=pool.ready,
        coming=pool.coming,
        missing=max(0, pool.size - pool.ready - pool.coming),
        open_hosts=pool.open_hosts,
    )


def seal_view(seal: Seal) -> SealView:
    return SealView(
        id=seal.id,
        sealed_at=seal.at,
        events=seal.events,
        last_event_id=seal.last_id,
        hash=seal.hash.hex(),
        previous=seal.previous.hex(),
    )


async def finding_views(findings: Sequence[StoredFinding]) -> list[FindingView]:
    """The findings, with the names of the databases and teams that they are about."""
    uuids = [find_uuid(one.subject) for one in findings]
    names = await names_of([uuid for uuid in uuids if uuid is not None])
    nobody = (None, None)
    named = [names.get(uuid or UUID(int=0), nobody) for uuid in uuids]
    return [
        FindingView(**msgspec.structs.asdict(one), database=name, team=team)
        for one, (name, team) in zip(findings, named, strict=True)
    ]


def operation_view(settings: Settings, record: OperatorRecord) -> OperatorOperationView:
    return OperatorOperationView(
        **msgspec.structs.asdict(view(record)),
        database=record.database_name,
        team_id=record.team_id,
        team=record.team_name,
        overdue=record.overdue,
        overdue_since=record.overdue_at,
        operator_cancellable=record.undoable,
        temporal_url=page_of(settings, "workflows", record.workflow_id),
    )
