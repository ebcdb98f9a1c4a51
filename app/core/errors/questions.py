"""Errors of questions."""

from types import MappingProxyType

from app.core.errors.base import AppError


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


class QueryAlreadyExecuted(AppError):
    """This SQL was executed, or is being, or it was translated too long ago: ask again."""

    code, status = "query_already_executed", 409

    def __init__(self) -> None:
        super().__init__("This SQL was executed already, or it is too old to be: ask again.")


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


class QueryExecutionFailed(AppError):
    """The engine refused the SQL or broke it off. The message is the engine's; `outcome_known` is false when the
    connection was lost or the time limit ended the wait, and it may have taken effect; `statements_executed` counts
    those before it that did."""

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


class LanguageModelUnavailable(AppError):
    """No language model is set, or it can't be reached. The message says what an operator has to set."""

    code, status = "language_model_unavailable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "30"})
