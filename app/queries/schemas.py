"""The shapes of questions and their results on the wire. Interface specification, sections 2.8 and 4.15."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.core.context import current_request_id
from app.dialects.verdict import SqlClass

Question = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\A[^\x00]*[^\x00\s][^\x00]*\Z")]


class AskQuestion(Struct, kw_only=True, forbid_unknown_fields=True):
    database_uuid: UUID
    query: Question
    """A question or an order in natural language."""


class Column(Struct, frozen=True):
    """`name` is its key in the rows, `type` the engine's name for its type."""

    name: str
    type: str


class Result(Struct, kw_only=True):
    """Fields beside `type` are those of that type alone: rows of a `select`, `affectedRows` of a `write`,
    `statementsExecuted` of a `ddl_batch`."""

    type: SqlClass
    columns: list[Column] | UnsetType = UNSET
    rows: list[dict[str, Any]] | UnsetType = UNSET
    rowCount: int | UnsetType = UNSET  # noqa: N815 - the specification's name
    truncated: bool | UnsetType = UNSET
    """True when there were more rows than the answer holds."""
    maxRows: int | UnsetType = UNSET  # noqa: N815
    affectedRows: int | UnsetType = UNSET  # noqa: N815
    statementsExecuted: int | UnsetType = UNSET  # noqa: N815


class QueryAnswer(Struct, kw_only=True):
    success: bool = True
    sql: str
    result: Result
    query_id: int
    """Under which the question is recorded."""
    request_id: str = field(default_factory=current_request_id)
