"""Errors of a team's limits."""

from types import MappingProxyType

from app.core.errors.base import AppError


class TeamLimitReached(AppError):
    """The team keeps as many as its tier allows. Deleting one makes room."""

    code, status, transient = "team_limit_reached", 422, True
    example_details = MappingProxyType({"resource": "blueprints", "limit": 50})

    def __init__(self, resource: str, limit: int) -> None:
        """`resource` is a plural noun in snake case."""
        what = resource.replace("_", " ")
        super().__init__(
            f"A team of this tier can keep {limit} {what}.", details={"resource": resource, "limit": limit}
        )


class TooManyUnderWay(AppError):
    """As many of the team's are under way as its tier allows. When one ends there is room."""

    code, status = "too_many_under_way", 429
    example_details = MappingProxyType({"resource": "blueprint_applications", "limit": 10})

    def __init__(self, resource: str, limit: int) -> None:
        """`resource` is a plural noun in snake case."""
        what = resource.replace("_", " ")
        super().__init__(
            f"A team of this tier can have {limit} {what} under way.",
            details={"resource": resource, "limit": limit},
            headers={"Retry-After": "5"},
        )
