"""What an API key may do. Interface specification, section 5."""

from collections.abc import Collection
from enum import Enum, StrEnum


class Scope(StrEnum):
    DATABASES_READ = "databases:read"
    DATABASES_WRITE = "databases:write"
    DATABASES_ALL = "databases:*"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    BLUEPRINTS_READ = "blueprints:read"
    BLUEPRINTS_WRITE = "blueprints:write"
    BACKUPS_READ = "backups:read"
    BACKUPS_WRITE = "backups:write"
    QUERIES_WRITE = "queries:write"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"
    TEAMS_READ = "teams:read"
    TEAMS_WRITE = "teams:write"
    AUDIT_READ = "audit:read"
    OPERATOR_READ = "operator:read"
    OPERATOR_WRITE = "operator:write"


OPERATOR_SCOPES = frozenset({Scope.OPERATOR_READ, Scope.OPERATOR_WRITE})
"""For keys of operators alone. No key has them by default."""
TEAM_SCOPES = tuple(scope for scope in Scope if scope not in OPERATOR_SCOPES)
"""What everybody's keys may have."""


class Reach(Enum):
    """What an operation is about, for keys that are for some databases only."""

    TEAM = "team"
    """More than single databases: such keys are refused."""
    DATABASE = "database"
    """The database that the path names."""
    OWN = "own"
    """What the operation itself confines to the key's databases, or what is no database's."""
    PERSON = "person"
    """What is the person's own, whatever their teams and roles: somebody in no team may do it too."""
    OPERATOR = "operator"
    """What is all teams': for operators, by a key that is for no single team or database."""


def grants(held: Collection[str], required: Scope) -> bool:
    """Whether a key with these scopes may do what needs that one."""
    return any(scope in held for scope in granting(required))


def granting(required: Scope) -> list[str]:
    """The scopes that each grant it: itself, and `resource:*`."""
    resource = required.value.partition(":")[0]
    return [required.value, f"{resource}:*"]
