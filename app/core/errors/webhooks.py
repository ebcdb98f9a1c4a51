"""Errors of webhook endpoints."""

from types import MappingProxyType

from app.core.errors.base import AppError


class EndpointLimitReached(AppError):
    """The team has as many active webhook endpoints as it may. Revoking one makes room."""

    code, status = "endpoint_limit_reached", 422
    example_details = MappingProxyType({"field": "team_id", "limit": 50})

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A team can have {limit} active webhook endpoints.", details={"field": "team_id", "limit": limit}
        )


class PingsUnderWay(AppError):
    """Pings to this endpoint, or to others of its team, still wait for their receivers."""

    code, status = "pings_under_way", 429
    example_details = MappingProxyType({"endpoint_id": 3})

    def __init__(self, endpoint: int, frees_in: int) -> None:
        """`frees_in` is the time in seconds by which one of them has ended."""
        super().__init__(
            "Test deliveries are still under way.",
            details={"endpoint_id": endpoint},
            headers={"Retry-After": str(frees_in)},
        )
