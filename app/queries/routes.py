"""`/api/v1/query_executions`. Interface specification, section 4.15."""

from collections.abc import Coroutine
from typing import Annotated, Any

from litestar import Request, Response, get, params, post
from litestar.di import NamedDependency
from litestar.enums import MediaType
from litestar.params import FromPath, QueryParameter, SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    DatabaseNotActive,
    DatabaseUnreachable,
    InvalidField,
    LanguageModelUnavailable,
    NotFound,
    QueryAllowanceExceeded,
    QueryAlreadyExecuted,
    QueryExecutionFailed,
    QueryNotTranslated,
    TooManyUnderWay,
    UnsafeSQL,
)
from app.queries import history
from app.queries.disconnect import ClientGone, while_connected
from app.queries.examples import EXAMPLE_ALLOWANCE, EXAMPLE_ANSWER, EXAMPLE_EXECUTION, EXAMPLE_QUESTION
from app.queries.schemas import AskQuestion, QueryAllowance, QueryAnswer, QueryExecutionView
from app.queries.service import Questions
from app.web.envelope import Item, Page, encode
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, parse_uuid, path_id, path_uuid

_CLIENT_CLOSED_REQUEST = 499
"""Nobody sees it; it is nginx's word for it in logs."""

Call = Request[Principal, Any, Any]
Injected = NamedDependency[SkipValidation[Questions]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
DatabaseUuid = Annotated[
    str | None,
    QueryParameter(
        name="database_uuid", description="Only questions to this database.", schema_extra={"format": "uuid"}
    ),
]


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
async def execute_query(request: Call, services: Injected, data: params.JSONBody[AskQuestion]) -> Response[bytes]:
    return await _answered(request, services.ask(request.user, data))


@post(
    "/query_executions/{id:str}/runs",
    **operation(
        "executeTranslatedQuery",
        "Execute what a question was translated to, once",
        action="query.run",
        scopes=(Scope.QUERIES_WRITE,),
        reach=Reach.OWN,
        answers={200: QueryAnswer},
        examples={200: EXAMPLE_ANSWER},
        errors=(
            NotFound,
            QueryAlreadyExecuted,
            DatabaseNotActive,
            UnsafeSQL,
            TooManyUnderWay,
            QueryExecutionFailed,
            DatabaseUnreachable,
        ),
    ),
)
async def execute_translated_query(request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
    return await _answered(request, services.execute(request.user, path_id(id, "question")))


@get(
    "/query_executions",
    **operation(
        "listQueryExecutions",
        "List your own questions, newest first, without their rows",
        scopes=(Scope.QUERIES_WRITE,),
        reach=Reach.OWN,
        answers={200: Page[QueryExecutionView]},
        examples={200: Page(data=[EXAMPLE_EXECUTION], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_query_executions(
    request: Call,
    limit: Limit = 25,
    starting_after: StartingAfterId = None,
    database_uuid: DatabaseUuid = None,
) -> Page[QueryExecutionView]:
    database, after = None if database_uuid is None else parse_uuid(database_uuid), cursor_id(starting_after)
    if database_uuid is not None and database is None:
        raise InvalidField("database_uuid", "Expected a uuid.")
    if after is not None and await history.find_own(request.user, after) is None:
        raise InvalidField("starting_after", "This is not the id of a question of yours.")
    page = await history.list_own(request.user, database=database, after=after, limit=limit + 1)
    return Page(data=[history.view(one) for one in page[:limit]], has_more=len(page) > limit)


@get(
    "/databases/{uuid:str}/query_allowance",
    **operation(
        "getQueryAllowance",
        "Get how many questions the database's team may still ask today",
        scopes=(Scope.QUERIES_WRITE,),
        reach=Reach.DATABASE,
        answers={200: Item[QueryAllowance]},
        examples={200: Item(data=EXAMPLE_ALLOWANCE)},
        errors=(NotFound,),
    ),
)
async def get_query_allowance(request: Call, uuid: FromPath[str]) -> Item[QueryAllowance]:
    return Item(data=await history.allowance_of(request.user, path_uuid(uuid, "database")))


async def _answered(request: Call, work: Coroutine[Any, Any, QueryAnswer]) -> Response[bytes]:
    try:
        answer = await while_connected(request, work)
    except ClientGone:
        return Response(b"", status_code=_CLIENT_CLOSED_REQUEST)
    return Response(encode(answer), media_type=MediaType.JSON)
