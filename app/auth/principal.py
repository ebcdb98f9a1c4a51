"""Who is calling."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import msgspec

from app.auth.roles import Role
from app.core.errors import InsufficientRole, InvalidField, NotAMember, NotFound


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of one request: a user, by one of their keys, or by the session of their browser."""

    user_id: int
    user_name: str
    user_email: str
    key_id: int
    """0 where there is none."""
    key_hash: bytes = b""
    """The hash of the key's text that the request came with: while a key is being replaced, it has two texts."""
    address: str | None = None
    """The client's address: a key may be for some networks only."""
    session_id: int | None = None
    """The session that a person is signed in with; None for a key."""
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
    """The teams that the key is for, its user is in, and whose role suffices for the operation; the primary one
    first."""
    team_tiers: list[str]
    """Those teams' tiers, in the same order, as they were when the request was let in."""
    team_names: list[str]
    team_roles: list[Role]
    """The user's roles there, in the same order."""
    ended_teams: list[int] = []
    """The teams that the user has left since the key was made: the key stays without them."""
    withheld: dict[int, Role] = {}
    """The other teams that the key is for and its user is in, where the user's role is too small for the
    operation."""
    required: tuple[Role, ...] = ()
    """The roles that may do the operation; empty where no team is withheld."""
    primary_team: int | None = None
    """The key's team that the user joined first, be it withheld; None where no team is withheld."""
    operator: bool = False
    """Whether the user is marked as an operator, whatever the key's scopes."""
    admitted_at: datetime
    """When the request was let in, by our database's clock."""

    @property
    def narrowed(self) -> bool:
        """Whether the key is for less than all that its user has."""
        return self.key_team_id is not None or self.databases is not None

    @property
    def readable_teams(self) -> list[int]:
        """The teams in which the user may read, whatever role the operation takes: what is only read may be any of
        these teams'."""
        return [*self.team_ids, *self.withheld]

    def reaches(self, database: UUID) -> bool:
        """Whether the key is for this database, if it is one of its teams'."""
        return self.databases is None or database in self.databases

    def check_reach(self, database: UUID, what: str) -> None:
        """Raises `NotFound` for `what`, a thing of this database, unless the key is for the database."""
        if not self.reaches(database):
            raise NotFound(what)

    def role_in(self, team_id: int) -> Role | None:
        """The user's role there; None outside of the key's teams."""
        if team_id in self.team_ids:
            return self.team_roles[self.team_ids.index(team_id)]
        return self.withheld.get(team_id)

    def refusal(self, team_id: int) -> InsufficientRole | NotAMember:
        """The error for a request about something of a team which is withheld, or which the user has left."""
        if team_id in self.withheld:
            return InsufficientRole(self.withheld[team_id], self.required, team_id)
        return NotAMember(team_id)

    def refusal_everywhere(self) -> InsufficientRole | NotAMember:
        """The error for a request about nothing of one team, where the operation is withheld in every team: it names
        the one where the user's role is the greatest."""
        if not self.withheld:
            return NotAMember(None)
        return self.refusal(max(self.withheld, key=lambda team: list(Role).index(self.withheld[team])))

    def check_role(self, team_id: int, required: Collection[Role]) -> None:
        """Raises `InsufficientRole`, for a team of the key's."""
        role = self.role_in(team_id)
        if role not in required:
            raise InsufficientRole(role or "", required, team_id)

    def owning_team(self, asked: int | None, what: str) -> int:
        """The team that is to own something new: the one that is asked for, or else the primary one. Raises
        `InvalidField`, `NotAMember` or `InsufficientRole`."""
        if asked is None:
            team_id = self.primary_team or next(iter(self.team_ids), None)
            if team_id is None:
                raise InvalidField("team_id", f"You are in no team that could own the {what}.")
        else:
            team_id = asked
        if team_id in self.withheld or team_id in self.ended_teams:
            raise self.refusal(team_id)
        if team_id not in self.team_ids:
            raise InvalidField("team_id", "This is not a team of yours.")
        return team_id

    def limited_to(self, required: frozenset[Role]) -> "Principal":
        """The same caller, for an operation that takes one of these roles: with only the teams where the user has
        one, which may be none."""
        places = [place for place, role in enumerate(self.team_roles) if role in required]
        return msgspec.structs.replace(
            self,
            team_ids=[self.team_ids[place] for place in places],
            team_tiers=[self.team_tiers[place] for place in places],
            team_names=[self.team_names[place] for place in places],
            team_roles=[self.team_roles[place] for place in places],
            withheld={
                team: role for team, role in zip(self.team_ids, self.team_roles, strict=True) if role not in required
            },
            required=tuple(role for role in Role if role in required),
            primary_team=self.team_ids[0],
        )
