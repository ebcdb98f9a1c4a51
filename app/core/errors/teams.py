"""Errors of teams, their members and their limits."""

from types import MappingProxyType

from app.core.errors.base import AppError

_GIGABYTES = "backup_storage_gb"


def _noun(resource: str) -> str:
    return "GB of backups" if resource == _GIGABYTES else resource.removesuffix("_under_way").replace("_", " ")


class TeamLimitReached(AppError):
    """The team has as many as it may. Deleting one makes room."""

    code, status = "team_limit_reached", 422
    example_details = MappingProxyType({"resource": "blueprints", "limit": 50})

    def __init__(self, resource: str, limit: float) -> None:
        """`resource` is a plural noun in snake case."""
        super().__init__(
            f"Your team can have at most {limit} {_noun(resource)}.", details={"resource": resource, "limit": limit}
        )


class TooManyUnderWay(AppError):
    """As many of the team's are under way as its tier allows, or of one database's changes as there may be. When one
    ends there is room."""

    code, status = "too_many_under_way", 429
    example_details = MappingProxyType({"resource": "blueprint_applications", "limit": 10})

    def __init__(self, resource: str, limit: float, *, whose: str = "Your team") -> None:
        """`resource` is a plural noun in snake case; `whose` begins the sentence."""
        super().__init__(
            f"{whose} can have at most {limit} {_noun(resource)} under way at once.",
            details={"resource": resource, "limit": limit},
            headers={"Retry-After": "5"},
        )


class TeamsLimitReached(AppError):
    """The person is in as many teams as there may be. Leaving one makes room; a deleted one counts as long as data of
    databases that the person made in it is kept."""

    code, status = "teams_limit_reached", 422
    example_details = MappingProxyType({"limit": 20})

    def __init__(self, limit: int) -> None:
        super().__init__(f"A person can be in {limit} teams.", details={"limit": limit})


class LastOwner(AppError):
    """A team keeps an owner: the last one can't leave, be removed, or get another role."""

    code, status = "last_owner", 409

    def __init__(self) -> None:
        super().__init__("A team keeps an owner. Make somebody else one first.")


class AlreadyAMember(AppError):
    """The person is in the team."""

    code, status = "already_a_member", 409

    def __init__(self) -> None:
        super().__init__("This person is in the team already.")


class InvitationEnded(AppError):
    """The invitation was accepted, or has expired."""

    code, status = "invitation_ended", 409
    example_details = MappingProxyType({"status": "accepted"})

    def __init__(self, status: str) -> None:
        super().__init__(f"This invitation is {status}.", details={"status": status})


class TeamHasDatabases(AppError):
    """A team with databases is not deleted. Deleting those first makes it possible."""

    code, status = "team_has_databases", 409
    example_details = MappingProxyType({"databases": 2})

    def __init__(self, databases: int) -> None:
        super().__init__("The team has databases. Delete those first.", details={"databases": databases})


class InvitationForAnother(AppError):
    """The invitation is for one address, and the caller has another one."""

    code, status = "invitation_for_another", 403

    def __init__(self) -> None:
        super().__init__("This invitation is for somebody with another address.")
