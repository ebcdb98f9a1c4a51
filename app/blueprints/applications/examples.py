"""One application in its states, for the API's description."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from app.blueprints.applications.schemas import ApplicationView, LogEntry, StatementStatus
from app.blueprints.examples import EXAMPLE_BLUEPRINT_UUID, EXAMPLE_SQL
from app.contracts.applications import ApplicationStatus

EXAMPLE_APPLICATION_ID = 1
_ASKED_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_ENTRY = LogEntry(
    index=1,
    line=1,
    kind="CREATE TABLE",
    sql="CREATE TABLE notes (id integer PRIMARY KEY, note varchar(200) NOT NULL)",
    status=StatementStatus.SUCCEEDED,
    rows=None,
    duration_ms=3,
    error=None,
    note=None,
)

EXAMPLE_APPLICATION = ApplicationView(
    id=EXAMPLE_APPLICATION_ID,
    blueprint_id=1,
    blueprint_uuid=UUID(EXAMPLE_BLUEPRINT_UUID),
    blueprint_version=1,
    database_instance_id=1,
    database_uuid=UUID("7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"),
    database_name="orders",
    status=ApplicationStatus.COMPLETED,
    is_dry_run=False,
    execution_log=[_ENTRY],
    total_duration_ms=41,
    statements_total=1,
    statements_succeeded=1,
    statements_failed=0,
    error_message=None,
    variable_values={"table": "notes"},
    started_at=_ASKED_AT,
    completed_at=_ASKED_AT + timedelta(milliseconds=41),
    created_at=_ASKED_AT,
)
EXAMPLE_WHOLE_APPLICATION = msgspec.structs.replace(EXAMPLE_APPLICATION, sql_content=EXAMPLE_SQL)
EXAMPLE_LISTED = msgspec.structs.replace(EXAMPLE_APPLICATION, execution_log=None)
EXAMPLE_UNDER_WAY = msgspec.structs.replace(
    EXAMPLE_APPLICATION,
    status=ApplicationStatus.PENDING,
    execution_log=None,
    total_duration_ms=None,
    statements_succeeded=0,
    started_at=None,
    completed_at=None,
)
