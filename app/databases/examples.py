"""One database in its states, for the API's description."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.databases.schemas import DatabaseView, DeletedDatabase, DeletedDatabaseView, Provisioning, StatusReason
from app.engines.tls import TlsMode
from app.quotas.plans import DEFAULT_PLANS, Quotas

EXAMPLE_UUID = "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"
_MADE_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_NAME = "tq3k7n2xw5mzr4ahd6fjbyv"
_ADDRESS = "db1.example.com:5432"

EXAMPLE_DATABASE = DatabaseView(
    uuid=UUID(EXAMPLE_UUID),
    name="orders",
    status=DatabaseStatus.ACTIVE,
    status_reason=None,
    region="us-east-1",
    plan="free",
    quotas=Quotas(),
    limits=DEFAULT_PLANS.by_name["free"].limits,
    db_type=Engine.POSTGRES,
    host="db1.example.com",
    port=5432,
    tls_mode=TlsMode.REQUIRE,
    db_name=_NAME,
    db_username=_NAME,
    team_id=1,
    team_name="Analytics",
    connection_string=f"postgresql://{_NAME}:********@{_ADDRESS}/{_NAME}",
    deletion_protection=False,
    expires_at=None,
    labels={"env": "production"},
    created_at=_MADE_AT,
    updated_at=_MADE_AT,
)
"""As in a list: without its password."""
EXAMPLE_PAUSED = msgspec.structs.replace(
    EXAMPLE_DATABASE,
    status=DatabaseStatus.PAUSED,
    status_reason=StatusReason(code="team", message="Its team paused it."),
)

EXAMPLE_ACTIVE = msgspec.structs.replace(
    EXAMPLE_DATABASE,
    db_password="example-password",  # noqa: S106 - it opens nothing
    tls_ca=None,
    connections_limited_to=None,
    connection_string=f"postgresql://{_NAME}:example-password@{_ADDRESS}/{_NAME}",
)
EXAMPLE_PROVISIONING = msgspec.structs.replace(EXAMPLE_ACTIVE, status=DatabaseStatus.PROVISIONING)
EXAMPLE_PROGRESS = Provisioning(completed=False, waited_seconds=0, poll_url=f"/api/v1/databases/{EXAMPLE_UUID}")
EXAMPLE_DELETED = DeletedDatabase(
    uuid=UUID(EXAMPLE_UUID),
    cancelled_provision_jobs=0,
    destroy_scheduled_at=_MADE_AT + timedelta(days=1),
    has_remote_resources=True,
)
EXAMPLE_RETAINED = DeletedDatabaseView(
    **msgspec.structs.asdict(msgspec.structs.replace(EXAMPLE_DATABASE, status=DatabaseStatus.DELETED)),
    deleted_at=_MADE_AT,
    destroy_scheduled_at=_MADE_AT + timedelta(days=1),
    final_backup_uuid=None,
)
"""As in the list of deleted ones."""
