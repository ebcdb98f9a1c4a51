"""Every error a client of the API can meet: one class each, with its code, HTTP status and meaning.

    AppError
    ├── MalformedJSON            400 malformed_json
    ├── Unauthorized             401 unauthorized
    ├── InvalidApiKey            403 invalid_api_key
    ├── ApiKeyExpired            403 api_key_expired
    ├── IpNotAllowed             403 ip_not_allowed
    ├── InsufficientScope        403 insufficient_scope
    ├── NotFound                 404 not_found
    ├── MethodNotAllowed         405 method_not_allowed
    ├── IdempotencyKeyConflict   409 idempotency_key_conflict
    ├── IdempotencyKeyInProgress 409 idempotency_key_in_progress
    ├── PayloadTooLarge          413 payload_too_large
    ├── MissingRequiredField     422 missing_required_field
    ├── InvalidField             422 invalid_field
    ├── PlanLimitExceeded        422 plan_limit_exceeded
    ├── CapacityExhausted        422 capacity_exhausted
    ├── DatabaseNotActive        422 database_not_active
    ├── BlueprintInvalid         422 blueprint_invalid
    ├── SystemBlueprint          422 system_blueprint
    ├── EndpointLimitReached     422 endpoint_limit_reached
    ├── UnsafeSQL                422 unsafe_sql
    ├── QueryNotTranslated       422 query_not_translated
    ├── RateLimitExceeded        429 rate_limit_exceeded
    ├── MonthlyQuotaExceeded     429 monthly_quota_exceeded
    ├── QueryAllowanceExceeded   429 query_allowance_exceeded
    ├── PingsUnderWay            429 pings_under_way
    ├── InternalError            500 internal_error
    ├── QueryExecutionFailed     500 query_execution_failed
    ├── RevocationPending        503 revocation_pending
    ├── LanguageModelUnavailable 503 language_model_unavailable
    ├── DatabaseUnreachable      503 database_unreachable
    └── ServiceUnavailable       503 service_unavailable

The envelope of interface specification section 2.10 is derived from it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar


def rate_limit_headers(limit: int, remaining: int, resets_in: int) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit` of the IETF's draft-ietf-httpapi-ratelimit-headers."""
    return {
        "RateLimit-Policy": f'"permin";q={limit};w=60',
        "RateLimit": f'"permin";r={remaining};t={resets_in}',
    }


class AppError(Exception):
    """What the API answers when it refuses or fails. `details` and `headers` go out as they are."""

    code: ClassVar[str]
    status: ClassVar[int]
    transient: ClassVar[bool] = False
    """The same request may be answered otherwise a moment later, so the refusal is not kept for its
    Idempotency-Key."""
    example_details: ClassVar[Mapping[str, Any] | None] = None
    """`details` as the API's description shows them; None where there are none."""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details is not None else None
        self.headers = dict(headers or {})


class MalformedJSON(AppError):
    """The body is not JSON."""

    code, status = "malformed_json", 400


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


class NotFound(AppError):
    """The resource is unknown or not the caller's; the two can't be told apart."""

    code, status = "not_found", 404

    def __init__(self, what: str) -> None:
        super().__init__(f"No such {what}.")


class MethodNotAllowed(AppError):
    """The path exists, the method on it doesn't."""

    code, status = "method_not_allowed", 405


class IdempotencyKeyConflict(AppError):
    """The key came before with another request."""

    code, status, transient = "idempotency_key_conflict", 409, True


class IdempotencyKeyInProgress(AppError):
    """The first request with this key is still under way."""

    code, status, transient = "idempotency_key_in_progress", 409, True


class PayloadTooLarge(AppError):
    """The body is larger than 1 MiB."""

    code, status = "payload_too_large", 413


class MissingRequiredField(AppError):
    """A required field, parameter or header is missing."""

    code, status = "missing_required_field", 422
    example_details = MappingProxyType({"field": "name"})

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is required.", details={"field": field})


class InvalidField(AppError):
    """A field, parameter or header has an unusable value, or is unknown."""

    code, status = "invalid_field", 422
    example_details = MappingProxyType({"field": "name"})

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, details={"field": field})


class PlanLimitExceeded(AppError):
    """The team's tier or the database's plan doesn't allow it."""

    code, status = "plan_limit_exceeded", 422
    example_details = MappingProxyType({"field": "plan"})

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, details={"field": field})


class CapacityExhausted(AppError):
    """No engine host has room; nothing was made. Another region may serve, or the same one later."""

    code, status, transient = "capacity_exhausted", 422, True
    example_details = MappingProxyType({"field": "region"})

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, details={"field": field})


class DatabaseNotActive(AppError):
    """The database is being provisioned or is paused, so nothing can be run on it now."""

    code, status, transient = "database_not_active", 422, True
    example_details = MappingProxyType({"status": "paused"})

    def __init__(self, status: str) -> None:
        """`status` is the database's."""
        super().__init__(f"The database is {status}, not active.", details={"status": status})


class BlueprintInvalid(AppError):
    """The SQL is not what a blueprint may hold; `details.errors` says where and why, with line and column."""

    code, status = "blueprint_invalid", 422
    example_details = MappingProxyType(
        {"field": "sql_content", "errors": ["line 3, column 1: COMMIT: a blueprint runs in one transaction"]}
    )

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(
            "The SQL can't be used as a blueprint.", details={"field": "sql_content", "errors": list(errors)}
        )
        self.errors = errors


class SystemBlueprint(AppError):
    """System blueprints are everyone's: only the operator changes or deletes them."""

    code, status = "system_blueprint", 422


class EndpointLimitReached(AppError):
    """The team has as many active webhook endpoints as it may. Revoking one makes room."""

    code, status, transient = "endpoint_limit_reached", 422, True
    example_details = MappingProxyType({"field": "team_id", "limit": 50})

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A team can have {limit} active webhook endpoints.", details={"field": "team_id", "limit": limit}
        )


class UnsafeSQL(AppError):
    """The question became SQL that is not executed: `reason` says why, `sql` is that SQL."""

    code, status = "unsafe_sql", 422
    example_details = MappingProxyType(
        {"reason": "Drop is not a statement that a question may become.", "sql": "DROP TABLE orders", "query_id": 7}
    )

    def __init__(self, reason: str, *, sql: str, query_id: int) -> None:
        super().__init__(
            f"The SQL is not executed: {reason}", details={"reason": reason, "sql": sql, "query_id": query_id}
        )


class QueryNotTranslated(AppError):
    """The language model made no SQL of the question; `reason` is its own, where it gave one."""

    code, status = "query_not_translated", 422
    example_details = MappingProxyType({"reason": "There is no table of invoices.", "query_id": 7})

    def __init__(self, reason: str, *, query_id: int) -> None:
        super().__init__(f"The question was not translated: {reason}", details={"reason": reason, "query_id": query_id})


class RateLimitExceeded(AppError):
    """The key's requests of this minute are used up."""

    code, status = "rate_limit_exceeded", 429
    example_details = MappingProxyType({})

    def __init__(self, limit: int, resets_in: int) -> None:
        """`resets_in` is in seconds. `Retry-After` is 60 whatever it is: interface specification, section 8."""
        super().__init__(
            f"This API key may make {limit} requests a minute.",
            details={},
            headers={"Retry-After": "60", **rate_limit_headers(limit, 0, resets_in)},
        )


class MonthlyQuotaExceeded(AppError):
    """The key's requests of this calendar month (UTC) are used up."""

    code, status = "monthly_quota_exceeded", 429
    example_details = MappingProxyType({})

    def __init__(self, resets_in: int, headers: Mapping[str, str]) -> None:
        """`resets_in`, in seconds, is the time to the next month; `headers` tell of the rate."""
        super().__init__(
            "This API key's monthly quota is used up.",
            details={},
            headers={"Retry-After": str(resets_in), **headers},
        )


class QueryAllowanceExceeded(AppError):
    """The team's questions of this day (UTC) are used up."""

    code, status = "query_allowance_exceeded", 429
    example_details = MappingProxyType({"allowance": 10})

    def __init__(self, allowance: int, resets_in: int) -> None:
        """`resets_in`, in seconds, is the time to midnight."""
        super().__init__(
            f"Your team's {allowance} questions of today are used up.",
            details={"allowance": allowance},
            headers={"Retry-After": str(resets_in)},
        )


class PingsUnderWay(AppError):
    """Pings to this endpoint, or to others of its team, still wait for their receivers."""

    code, status = "pings_under_way", 429
    example_details = MappingProxyType({"endpoint_id": 3})

    def __init__(self, endpoint: int, frees_in: int) -> None:
        """`frees_in`, in seconds, is when one of them has ended at the latest."""
        super().__init__(
            "Test deliveries are still under way.",
            details={"endpoint_id": endpoint},
            headers={"Retry-After": str(frees_in)},
        )


class InternalError(AppError):
    """Something unexpected; the log line carries the request id."""

    code, status = "internal_error", 500


class QueryExecutionFailed(AppError):
    """The engine refused the SQL or broke it off. The message is the engine's; `outcome_known` is false when the
    connection was lost and it may have taken effect, `statements_executed` counts those before it that did."""

    code, status = "query_execution_failed", 500
    example_details = MappingProxyType(
        {
            "sql": "SELECT total / 0 FROM orders",
            "query_id": 7,
            "engine_code": "22012",
            "statements_executed": 0,
            "outcome_known": True,
        }
    )


class RevocationPending(AppError):
    """A deletion was accepted and goes on, but the engine has not ended all access yet."""

    code, status = "revocation_pending", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})


class LanguageModelUnavailable(AppError):
    """No language model is set, or it can't be reached. The message says what an operator has to set."""

    code, status = "language_model_unavailable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "30"})


class DatabaseUnreachable(AppError):
    """The database's engine host doesn't answer, or takes no more connections at the moment."""

    code, status = "database_unreachable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})


class ServiceUnavailable(AppError):
    """Our own database can't be reached. Whether the change was made, a retry with the same Idempotency-Key tells."""

    code, status = "service_unavailable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})
