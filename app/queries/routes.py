"""`/api/v1/query_executions`. Interface specification, section 4.15."""

from typing import Any

from litestar import Request, Response, params, post
from litestar.di import NamedDependency
from litestar.enums import MediaType
from litestar.params import SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    DatabaseNotActive,
    DatabaseUnreachable,
    LanguageModelUnavailable,
    NotFound,
    QueryAllowanceExceeded,
    QueryExecutionFailed,
    QueryNotTranslated,
    TooManyUnderWay,
    UnsafeSQL,
)
from app.queries.disconnect import ClientGone, while_connected
from app.queries.examples import EXAMPLE_ANSWER, EXAMPLE_QUESTION
from app.queries.schemas import AskQuestion, QueryAnswer
from app.queries.service import Questions
from app.web.envelope import encode
from app.web.operation import operation

_CLIENT_CLOSED_REQUEST = 499
"""Nobody sees it; it is nginx's word for it in logs."""

Call = Request[Principal, Any, Any]


@post(
    "/query_executions",
    **operation(
        "executeQuery",
        "Ask in natural language",
        action="query.execute",
        scopes=(Scope.QUERIES_WRITE,),
        reach=Reach.OWN,
        answers={200: QueryAnswer},
        examples={200: EXAMPLE_ANSWER},
        errors=(
            NotFound,
            DatabaseNotActive,
            UnsafeSQL,
            QueryNotTranslated,
            QueryAllowanceExceeded,
            TooManyUnderWay,
            QueryExecutionFailed,
            LanguageModelUnavailable,
            DatabaseUnreachable,
        ),
        body=AskQuestion,
        example=EXAMPLE_QUESTION,
    ),
)
async def execute_query(
    request: Call, services: NamedDependency[SkipValidation[Questions]], data: params.JSONBody[AskQuestion]
) -> Response[bytes]:
    try:
        answer = await while_connected(request, services.ask(request.user, data))
    except ClientGone:
        return Response(b"", status_code=_CLIENT_CLOSED_REQUEST)
    return Response(encode(answer), media_type=MediaType.JSON)
