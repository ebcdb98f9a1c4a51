"""Errors of blueprints."""

from collections.abc import Sequence
from types import MappingProxyType

from app.core.errors.base import AppError


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
