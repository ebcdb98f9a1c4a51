"""Errors of API keys: authentication, permission, and limits."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from app.core.errors.base import AppError


def rate_limit_headers(limit: int, remaining: int, resets_in: int) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit` of the IETF's draft-ietf-httpapi-ratelimit-headers."""
    policy, left = rate_limit_values(limit, remaining, resets_in)
    return {"RateLimit-Policy": policy, "RateLimit": left}


def rate_limit_values(limit: int, remaining: int, resets_in: int) -> tuple[str, str]:
    """Those of the two headers."""
    return f'"permin";q={limit};w=60', f'"permin";r={remaining};t={resets_in}'


class Unauthorized(AppError):
    """The Authorization header is missing or malformed."""

    code, status = "unauthorized", 401

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"WWW-Authenticate": "Bearer"})


class InvalidApiKey(AppError):
    """The key is unknown or revoked."""

    code, status = "invalid_api_key", 403


class ApiKeyExpired(AppError):
    """The key has passed its expiry."""

    code, status = "api_key_expired", 403


class IpNotAllowed(AppError):
    """The key has a list of networks, and the caller's address is in none of them."""

    code, status = "ip_not_allowed", 403


class InsufficientScope(AppError):
    """The key lacks a scope that the operation needs."""

    code, status = "insufficient_scope", 403
    example_details = MappingProxyType({"required": "databases:write"})

    def __init__(self, required: str) -> None:
        super().__init__(f"This API key lacks the scope {required}.", details={"required": required})


class InsufficientRole(AppError):
    """The role of the key's user in that team is too small for the operation."""

    code, status = "insufficient_role", 403
    example_details = MappingProxyType({"role": "viewer", "required": ["member", "admin", "owner"], "team_id": 1})

    def __init__(self, role: str, required: Collection[str], team_id: int) -> None:
        names = [str(one) for one in required]
        takes = f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else names[0]
        super().__init__(
            f"Your role in team {team_id} is {role or 'none'}; this takes {takes}.",
            details={"role": str(role), "required": names, "team_id": team_id},
        )


class NotAMember(AppError):
    """The key's user is not in the team, or in none, or the key is from before they left it. Such a key stays without
    that team, also when its user comes back."""

    code, status = "not_a_member", 403
    example_details = MappingProxyType({"team_id": 1})

    def __init__(self, team_id: int | None) -> None:
        """None for somebody who is in no team."""
        which = f"not in team {team_id}, or has left it since this key was made" if team_id else "in no team"
        super().__init__(f"The user of this API key is {which}.", details={"team_id": team_id})


class KeyForSomeDatabases(AppError):
    """The key is for some databases only, and the operation is about more than those."""

    code, status = "key_for_some_databases", 403

    def __init__(self) -> None:
        super().__init__("This API key is for some databases only, and this concerns more than those.")


class OperatorsOnly(AppError):
    """It concerns all teams, and takes an operator: somebody marked as one, by a key that is for no single team or
    database."""

    code, status = "operators_only", 403

    def __init__(self, why: str) -> None:
        super().__init__(f"Only operators do this. {why}")


class ExceedsOwnKey(AppError):
    """What a key makes of another is to be no wider than it is itself."""

    code, status = "exceeds_own_key", 403
    example_details = MappingProxyType({"field": "permissions"})

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: this is more than the API key of this request may do.", details={"field": field})


class KeyLimitReached(AppError):
    """The user has as many keys as there may be. Revoking one makes room."""

    code, status = "key_limit_reached", 422
    example_details = MappingProxyType({"limit": 100})

    def __init__(self, limit: int) -> None:
        super().__init__(f"A user can have {limit} API keys.", details={"limit": limit})


class RateLimitExceeded(AppError):
    """The key's requests of this minute are used up."""

    code, status = "rate_limit_exceeded", 429
    example_details = MappingProxyType({})

    def __init__(self, limit: int, resets_in: int, whose: str = "This API key") -> None:
        """`resets_in` is in seconds. `Retry-After` is 60 whatever it is: interface specification, section 8."""
        super().__init__(
            f"{whose} may make {limit} requests a minute.",
            details={},
            headers={"Retry-After": "60", **rate_limit_headers(limit, 0, resets_in)},
        )


class TooManyInFlight(AppError):
    """So many requests of this key, or from this address, wait for their answers that no more are taken."""

    code, status = "too_many_in_flight", 429
    example_details = MappingProxyType({"limit": 1000})

    def __init__(self, whose: str, limit: int) -> None:
        """`whose` completes the sentence "… may have 10 requests in flight"."""
        super().__init__(
            f"{whose} may have {limit} requests in flight.", details={"limit": limit}, headers={"Retry-After": "1"}
        )


class TooManyStreams(AppError):
    """So many event streams of this key, of this team or of all are open that no more are taken."""

    code, status = "too_many_streams", 429
    example_details = MappingProxyType({"limit": 1000})

    def __init__(self, whose: str, limit: int) -> None:
        """`whose` completes the sentence "… may have 10 event streams open"."""
        super().__init__(
            f"{whose} may have {limit} event streams open.", details={"limit": limit}, headers={"Retry-After": "5"}
        )


class MonthlyQuotaExceeded(AppError):
    """The key's requests of this calendar month (UTC) are used up."""

    code, status = "monthly_quota_exceeded", 429
    example_details = MappingProxyType({})

    def __init__(self, resets_in: int, headers: Mapping[str, str]) -> None:
        """`resets_in` are the seconds to the next month; `headers` describe the key's rate limit."""
        super().__init__(
            "This API key's monthly quota is used up.",
            details={},
            headers={"Retry-After": str(resets_in), **headers},
        )
