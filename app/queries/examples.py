"""One question and its answer, for the API's description."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.databases.examples import EXAMPLE_UUID
from app.dialects.verdict import SqlClass
from app.queries.schemas import Column, QueryAllowance, QueryAnswer, QueryExecutionView, Result

EXAMPLE_QUESTION: dict[str, Any] = {"database_uuid": EXAMPLE_UUID, "query": "Which three customers spent the most?"}
EXAMPLE_ANSWER = QueryAnswer(
    sql="SELECT customer, sum(total) AS spent FROM orders GROUP BY customer ORDER BY spent DESC LIMIT 3",
    result=Result(
        type=SqlClass.SELECT,
        columns=[Column("customer", "text"), Column("spent", "numeric")],
        rows=[{"customer": "Ada", "spent": "120.50"}],
        rowCount=1,
        truncated=False,
        maxRows=1000,
    ),
    query_id=7,
)
EXAMPLE_EXECUTION = QueryExecutionView(
    id=7,
    database_uuid=UUID(EXAMPLE_UUID),
    query=EXAMPLE_QUESTION["query"],
    sql=EXAMPLE_ANSWER.sql,
    type=SqlClass.SELECT,
    outcome="succeeded",
    error_code=None,
    reason=None,
    row_count=1,
    duration_ms=840,
    created_at=datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
)
EXAMPLE_ALLOWANCE = QueryAllowance(
    team_id=1, per_day=10, used=3, remaining=7, resets_at=datetime(2026, 11, 21, tzinfo=UTC)
)
