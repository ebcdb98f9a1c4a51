"""What a person may do in a team. A key's scopes say what a program may do with it; the smaller of the two holds."""

from collections.abc import Iterable
from enum import StrEnum

from app.auth.scopes import Scope
from app.core.errors import InvalidField


class Role(StrEnum):
    """From the least to the most: each may do what those before it may."""

    VIEWER = "viewer"
    """Reads everything but passwords, and asks no questions in natural language."""
    MEMBER = "member"
    """Makes, changes and uses databases, blueprints, questions and webhooks, and mints keys."""
    ADMIN = "admin"
    """Deletes databases and backups; manages everyone's keys, members below owner, and invitations."""
    OWNER = "owner"
    """Manages owners too, renames the team, and ends it."""

    def covers(self, other: "Role") -> bool:
        """Whether this role may do all that the other one may."""
        return _RANKS[self] >= _RANKS[other]

    def manages(self, other: "Role") -> bool:
        """Whether somebody with this role gives the other one to people, takes it from them, or removes them."""
        return self is Role.OWNER or (self is Role.ADMIN and other is not Role.OWNER)


_RANKS = {role: rank for rank, role in enumerate(Role)}


def known_role(name: str, field: str = "role") -> Role:
    """Raises `InvalidField`, which names the roles that there are."""
    try:
        return Role(name)
    except ValueError:
        raise InvalidField(field, f"{name!r} is no role; the roles are {', '.join(Role)}.") from None


def allows(role: Role, scope: Scope) -> bool:
    """Whether somebody with this role in a team may do there what needs that scope."""
    return role.covers(_least(scope))


def roles_that_may(scopes: Iterable[Scope], least: Role | None = None) -> frozenset[Role]:
    """The roles that may do what needs all of these scopes, or what `least` says in their place."""
    needed = [least] if least is not None else [_least(scope) for scope in scopes]
    return frozenset(role for role in Role if all(role.covers(other) for other in needed))


def _least(scope: Scope) -> Role:
    if scope in (Scope.TEAMS_WRITE, Scope.AUDIT_READ):
        return Role.ADMIN
    return Role.VIEWER if scope.value.endswith(":read") else Role.MEMBER
