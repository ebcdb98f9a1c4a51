"""Examples for the API's description."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from app.usage.schemas import UsageReport, UsageView
from app.usage.views import csv_rows

_UUID = UUID("3f0c9a56-6d0e-4a4b-9d43-6a2f4c1f7a10")
EXAMPLE_USAGE = UsageView(
    id=f"2026-11-22T10:00:00Z/{_UUID}",
    starts_at=datetime(2026, 11, 22, 10, tzinfo=UTC),
    ends_at=datetime(2026, 11, 22, 11, tzinfo=UTC),
    open=False,
    database_uuid=_UUID,
    database_name="orders",
    team_id=7,
    team_name="Acme",
    runtime_seconds=3600,
    storage_byte_seconds=Decimal(28_991_029_248),
    backup_byte_seconds=Decimal(7_372_800_000),
)
EXAMPLE_REPORT = UsageReport(
    data=[EXAMPLE_USAGE],
    has_more=False,
    since=datetime(2026, 11, 22, 10, tzinfo=UTC),
    until=datetime(2026, 11, 22, 11, tzinfo=UTC),
    group_by="database",
    granularity="period",
    as_of=datetime(2026, 11, 22, 11, 30, tzinfo=UTC),
)
EXAMPLE_CSV = csv_rows([EXAMPLE_USAGE], header=True)
