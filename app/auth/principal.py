"""Who is calling."""

from datetime import datetime

import msgspec


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of one request: a user, by one of their keys."""

    user_id: int
    user_name: str
    user_email: str
    key_id: int
    key_name: str
    preview: str
    scopes: list[str]
    requests_per_minute: int
    monthly_quota: int | None
    allowed_ips: list[str]
    inactive_ttl_days: int | None
    last_used_at: datetime | None
    team_ids: list[int]
    """The caller's teams, the primary one first."""
    team_tiers: list[str]
    """Theirs, in the same order, as they were when the request was let in."""
    team_names: list[str]
    admitted_at: datetime
    """When that was, by our database's clock."""
