"""Who is calling."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.core.errors import NotFound


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
    key_team_id: int | None
    """The one team that the key is for; None for all of the user's."""
    databases: list[UUID] | None
    """The databases that the key is for; None for all of its teams'."""
    team_ids: list[int]
    """The teams that the key is for and its user is in, the primary one first."""
    team_tiers: list[str]
    """Theirs, in the same order, as they were when the request was let in."""
    team_names: list[str]
    admitted_at: datetime
    """When that was, by our database's clock."""

    @property
    def narrowed(self) -> bool:
        """Whether the key is for less than all that its user has."""
        return self.key_team_id is not None or self.databases is not None

    def reaches(self, database: UUID) -> bool:
        """Whether the key is for this database, if it is one of its teams'."""
        return self.databases is None or database in self.databases

    def check_reach(self, database: UUID, what: str) -> None:
        """Raises `NotFound` of a thing of this database, unless the key is for it."""
        if not self.reaches(database):
            raise NotFound(what)
