"""One question and its answer, for the API's description."""

from typing import Any

from app.databases.examples import EXAMPLE_UUID
from app.dialects.verdict import SqlClass
from app.queries.schemas import Column, QueryAnswer, Result

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
