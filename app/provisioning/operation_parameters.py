"""Query parameters that narrow a list of operations."""

from enum import StrEnum
from typing import Annotated, TypeVar
from uuid import UUID

from litestar.params import QueryParameter

from app.core.errors import InvalidField
from app.operations.kinds import OperationStatus, OperationType
from app.web.parameters import parse_uuid

Choice = TypeVar("Choice", bound=StrEnum)

OperatedFilter = Annotated[
    str | None,
    QueryParameter(
        name="database_uuid",
        description="Only operations on this database, deleted or not.",
        schema_extra={"format": "uuid"},
    ),
]
OperationStatusFilter = Annotated[
    str | None,
    QueryParameter(
        name="status",
        description="Only operations with this status.",
        schema_extra={"enum": [status.value for status in OperationStatus]},
    ),
]
OperationTypeFilter = Annotated[
    str | None,
    QueryParameter(
        name="type",
        description="Only operations of this type.",
        schema_extra={"enum": [type.value for type in OperationType]},
    ),
]


def known_uuid(field: str, text: str | None) -> UUID | None:
    """Raises `InvalidField`."""
    uuid = None if text is None else parse_uuid(text)
    if text is not None and uuid is None:
        raise InvalidField(field, "Expected a uuid.")
    return uuid


def known_choice(field: str, text: str | None, choices: type[Choice]) -> Choice | None:
    """Raises `InvalidField`."""
    if text is None:
        return None
    try:
        return choices(text)
    except ValueError:
        raise InvalidField(field, f"Expected one of {', '.join(choices)}.") from None
