"""The shapes of questions and their results on the wire. Interface specification, sections 2.8 and 4.15."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.core.clock import Moment
from app.core.context import current_request_id
from app.dialects.verdict import SqlClass

Question = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\A[^\x00]*[^\x00\s][^\x00]*\Z")]


class AskQuestion(Struct, kw_only=True, forbid_unknown_fields=True):
    database_uuid: UUID
    query: Question
    """A question or an order in natural language."""
    execute: bool = True
    """False to see the SQL and its class first. It is executed by the answer's `query_id`, within 10 minutes."""


class Column(Struct, frozen=True):
    """`name` is its key in the rows, `type` the engine's name for its type."""

    name: str
    type: str


class Result(Struct, kw_only=True):
    """Fields beside `type` are those of that type alone: rows of a `select`, `affectedRows` of a `write`,
    `statementsExecuted` of a `ddl_batch`. None of them are there of what was not executed yet."""

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


class QueryExecutionView(Struct, kw_only=True):
    """The record of a question: no rows, and of errors the code alone."""

    object: Literal["query_execution"] = "query_execution"
    id: int
    """The `query_id` of its answer."""
    database_uuid: UUID | None
    """Null once the database's record is gone."""
    query: str
    sql: str | None
    type: SqlClass | None
    outcome: str | None
    """Null while it is under way; `translated` of SQL that was shown and not executed."""
    error_code: str | None
    reason: str | None
    """Why its SQL was refused."""
    row_count: int | None
    """Rows that it read or changed."""
    duration_ms: int | None
    created_at: Moment


class QueryAllowance(Struct, kw_only=True):
    """What the team that owns a database may ask today (UTC), about any of its databases."""

    object: Literal["query_allowance"] = "query_allowance"
    team_id: int
    per_day: int | None
    """Null for no limit."""
    used: int
    """Those under way included."""
    remaining: int | None
    resets_at: Moment
