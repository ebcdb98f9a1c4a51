"""The report of usage, as clients see it."""

from decimal import Decimal
from typing import Literal
from uuid import UUID

import msgspec

from app.core.clock import Moment
from app.core.context import current_request_id


class UsageView(msgspec.Struct, frozen=True, kw_only=True):
    """What one group used in one span of time. Of its identifiers it has those that the report is grouped by; a
    database's line has its team too."""

    object: Literal["usage"] = "usage"
    id: str
    """For `starting_after`."""
    starts_at: Moment
    ends_at: Moment
    """The end of the last period that is counted."""
    open: bool
    """Its last period is not closed: the line still grows. A line that is not open never changes."""
    database_uuid: UUID | None = None
    database_name: str | None = None
    """As it is now."""
    team_id: int | None = None
    team_name: str | None = None
    plan: str | None = None
    region: str | None = None
    runtime_seconds: int
    """In which the database was `active`."""
    storage_byte_seconds: Decimal
    """What lay on a host, in bytes, times the seconds. May have more than 64 bits."""
    backup_byte_seconds: Decimal
    """The same of the backups in the store, as they are stored."""
    measured_at: Moment | None = None
    """When the size was measured last, which counts until the next measurement; of a database's open line alone."""


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """One page of it. When `has_more` is true, the last line's `id` is the next page's `starting_after`."""

    data: list[UsageView]
    has_more: bool
    since: Moment = msgspec.field(name="from")
    until: Moment = msgspec.field(name="to")
    group_by: str
    granularity: str
    as_of: Moment
    """Everything before is counted."""
    request_id: str = msgspec.field(default_factory=current_request_id)
