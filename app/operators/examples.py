"""What operators see, for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.backups.restores.evacuation import EvacuationStatus
from app.contracts.base import Engine
from app.contracts.upkeep import ScheduleId
from app.engines.tls import TlsMode
from app.operations.examples import EXAMPLE_CANCELLED, EXAMPLE_CANCELLING, EXAMPLE_OPERATION
from app.operations.schemas import OperationView
from app.operators.schemas import (
    AddedHost,
    CheckView,
    EvacuatedDatabase,
    EvacuationView,
    FindingView,
    HostRoom,
    HostView,
    OperatorOperationView,
    PoolView,
    SealView,
)

_UI = "http://127.0.0.1:8233/namespaces/default"

EXAMPLE_HOST = HostView(
    id=1,
    db_type=Engine.POSTGRES,
    flavour="postgres",
    version="18.6",
    region="us-east-1",
    host="db1.example.com",
    port=5432,
    databases=420,
    capacity=1000,
    connections=8400,
    connection_capacity=1000,
    connection_overcommit=10,
    storage_gb=2000,
    connection_room=10_000,
    open_connections=320,
    connections_short=False,
    load=0.84,
    room=HostRoom(databases=580, connections=1600),
    draining=False,
    failure=None,
    tls=TlsMode.VERIFY_FULL,
    ca=False,
    extensions=["pg_trgm"],
)
EXAMPLE_DRAINING_HOST = msgspec.structs.replace(EXAMPLE_HOST, draining=True)
EXAMPLE_ADDED_HOST = AddedHost.of(EXAMPLE_HOST, ["It has no TLS: passwords and data cross the network in clear."])
EXAMPLE_EVACUATION = EvacuationView(
    host_id=1,
    databases=[
        EvacuatedDatabase(
            database_uuid=UUID("7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"),
            name="orders",
            team="Orders",
            status=EvacuationStatus.MOVING,
            host="db2.example.com:5432",
            backup_uuid=UUID("0b8f3c52-5a1e-4f0e-9d0f-2a7c1f3e6b55"),
            data_of=datetime(2026, 11, 20, 7, 0, tzinfo=UTC),
            age_seconds=3600,
        )
    ],
)
EXAMPLE_POOL = PoolView(
    db_type=Engine.POSTGRES,
    region="us-east-1",
    size=10,
    size_from="setting",
    ready=7,
    coming=2,
    missing=1,
    open_hosts=3,
)
EXAMPLE_FINDING = FindingView(
    id=31,
    rule="tenant_missing",
    subject=str(UUID("7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90")),
    detail="is not on its host",
    database="orders",
    team="Orders",
    host_id=1,
    first_seen_at=datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
    last_seen_at=datetime(2026, 11, 20, 8, 5, tzinfo=UTC),
)
EXAMPLE_SEAL = SealView(
    id=4,
    sealed_at=datetime(2026, 11, 20, 8, 0, 10, tzinfo=UTC),
    events=12,
    last_event_id=4711,
    hash="9f" * 32,
    previous="3c" * 32,
)
EXAMPLE_CHECK = CheckView(schedule_id=ScheduleId.RECONCILE.value, temporal_url=f"{_UI}/schedules/reconcile")


def _for_operators(seen: OperationView) -> OperatorOperationView:
    return OperatorOperationView(
        **msgspec.structs.asdict(seen),
        database="orders",
        team_id=1,
        team="Orders",
        overdue=False,
        overdue_since=None,
        operator_cancellable=seen.cancellable,
        temporal_url=f"{_UI}/workflows/{seen.workflow_id}",
    )


EXAMPLE_OF_ANYBODY = _for_operators(EXAMPLE_OPERATION)
EXAMPLE_CANCELLED_OF_ANYBODY = _for_operators(EXAMPLE_CANCELLED)
EXAMPLE_CANCELLING_OF_ANYBODY = _for_operators(EXAMPLE_CANCELLING)
