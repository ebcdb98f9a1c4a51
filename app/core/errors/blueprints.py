"""Errors of blueprints."""

from collections.abc import Sequence
from types import MappingProxyType

from app.core.errors.base import AppError

_MOST_CHARACTERS, _MOST_TOGETHER = 1000, 10_000
"""Characters of one error, and of those that are told together. An error may repeat a name of the script, up to a
megabyte, and the answer may be stored for its Idempotency-Key."""


class BlueprintInvalid(AppError):
    """The SQL is not what a blueprint may hold; `details.errors` says where and why, with line and column."""

    code, status = "blueprint_invalid", 422
    example_details = MappingProxyType(
        {"field": "sql_content", "errors": ["line 3, column 1: COMMIT: a blueprint runs in one transaction"]}
    )

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = _beginning(errors)
        super().__init__(
            "The SQL can't be used as a blueprint.", details={"field": "sql_content", "errors": self.errors}
        )


def _beginning(errors: Sequence[str]) -> list[str]:
    """The first errors, none of them longer than may be shown."""
    shown: list[str] = []
    room = _MOST_TOGETHER
    for error in errors:
        if room <= 0:
            break
        shown.append(error[:_MOST_CHARACTERS])
        room -= len(shown[-1])
    return shown


class SystemBlueprint(AppError):
    """System blueprints are everyone's: only the operator changes or deletes them."""

    code, status = "system_blueprint", 422
