"""What the API is to answer, by a model in memory: users, teams, databases, and the keys of their requests."""

from dataclasses import dataclass, field, replace
from typing import Any

FREE_PLAN = {"storage_hard_limit_gb": 0.5, "connection_hard_limit": 10, "warning_threshold_pct": 80}
PLANS: dict[str, dict[str, float]] = {
    "free": FREE_PLAN,
    "launch": {**FREE_PLAN, "storage_hard_limit_gb": 10, "connection_hard_limit": 50},
    "grow": {**FREE_PLAN, "storage_hard_limit_gb": 50, "connection_hard_limit": 200},
    "pro": {**FREE_PLAN, "storage_hard_limit_gb": 100, "connection_hard_limit": 400},
}
NO_QUOTAS: dict[str, float | None] = dict.fromkeys(FREE_PLAN)


@dataclass
class Team:
    id: int
    name: str
    tier: str


@dataclass
class User:
    name: str
    id: int
    api_key: str = field(repr=False)
    teams: list[Team]
    """The primary one first."""


@dataclass
class Database:
    uuid: str
    team: Team
    name: str
    db_type: str
    plan: str
    quotas: dict[str, float | None]
    password: str = field(repr=False)
    deleted: bool = False

    @property
    def limits(self) -> dict[str, float]:
        return PLANS[self.plan] | {name: value for name, value in self.quotas.items() if value is not None}


@dataclass
class Blueprint:
    uuid: str
    team: Team
    name: str
    description: str | None
    sql: str
    version: int = 1
    deleted: bool = False


@dataclass
class Endpoint:
    id: int
    team: Team
    url: str
    events: list[str]
    revoked: bool = False
    pings: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Refusal:
    status: int
    code: str
    field: str | None = None


@dataclass
class Sent:
    """A request with an Idempotency-Key, and how it was answered."""

    user: User
    key: str
    operation: str
    body: Any
    given: dict[str, Any]
    status: int
    answer: dict[str, Any] = field(repr=False)

    def changed(self) -> "Sent":
        """Another request with the same key."""
        return replace(
            self, operation="createDatabase", given={}, body={"name": "changed", "warning_threshold_pct": 99}
        )


class Model:
    """All of it starts empty; things are kept in the order of their making."""

    def __init__(self) -> None:
        self.databases: list[Database] = []
        self.endpoints: list[Endpoint] = []
        self.blueprints: list[Blueprint] = []
        self.sent: list[Sent] = []

    def visible(self, user: User) -> list[Database]:
        """Newest first."""
        return [database for database in reversed(self.databases) if self.sees(user, database)]

    def sees(self, user: User, database: Database) -> bool:
        return database.team in user.teams and not database.deleted

    def refuses_create(self, user: User, body: dict[str, Any]) -> Refusal | None:
        """Why, by the rules of teams, tiers and plans. The body's shape is right."""
        team = self.team_of(user, body)
        if team is None:
            return Refusal(422, "invalid_field", "team_id")
        if team.tier == "free":
            if body.get("plan", "free") != "free":
                return Refusal(422, "plan_limit_exceeded", "plan")
            if any(database.team is team and not database.deleted for database in self.databases):
                return Refusal(422, "plan_limit_exceeded", "team_id")
        return self.refuses_quotas(team, body.get("plan", "free"), body)

    @staticmethod
    def refuses_quotas(team: Team, plan: str, quotas: dict[str, Any]) -> Refusal | None:
        """A free team can't raise a limit of its plan."""
        for name in ("storage_hard_limit_gb", "connection_hard_limit"):
            if team.tier == "free" and (quotas.get(name) or 0) > PLANS[plan][name]:
                return Refusal(422, "plan_limit_exceeded", name)
        return None

    @staticmethod
    def team_of(user: User, body: dict[str, Any]) -> Team | None:
        """The team that a create is for; None for another's."""
        if "team_id" not in body:
            return user.teams[0]
        return next((team for team in user.teams if team.id == body["team_id"]), None)
