"""`/api/v1/usage`."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import QueryParameter
from litestar.response import Stream

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.errors import InvalidField
from app.usage.asking import read_cursor, read_query
from app.usage.examples import EXAMPLE_CSV, EXAMPLE_REPORT
from app.usage.report import Clock, Granularity, GroupBy, UsageQuery, read_clock, read_lines, stream_lines
from app.usage.schemas import UsageReport
from app.usage.views import csv_rows, views
from app.web.envelope import encode
from app.web.operation import operation

Call = Request[Principal, Any, Any]
_JSON, _CSV = "application/json", "text/csv"
_CSV_PAGE = 10_000
"""Lines that are read at once, and held in memory."""

From = Annotated[
    str | None,
    QueryParameter(
        name="from",
        description="The first period that begins then or later: a date, or a time with its offset. The beginning of"
        " the month unless given.",
        schema_extra={"examples": ["2026-11-01"]},
    ),
]
To = Annotated[
    str | None,
    QueryParameter(
        name="to",
        description="Only periods that begin before that moment. Now unless given; at most 400 days after `from`.",
        schema_extra={"examples": ["2026-12-01T00:00:00Z"]},
    ),
]
By = Annotated[
    str,
    QueryParameter(
        name="group_by",
        description="Whose use is added up in one line. `database` unless given.",
        schema_extra={"enum": [one.value for one in GroupBy]},
    ),
]
Spans = Annotated[
    str,
    QueryParameter(
        name="granularity",
        description="Which time is added up in one line: a period of the ledger, a day or a month in UTC, or all."
        " `period` unless given.",
        schema_extra={"enum": [one.value for one in Granularity]},
    ),
]
Lines = Annotated[int, QueryParameter(name="limit", ge=1, le=5000, description="Lines on the page. CSV has all.")]
After = Annotated[
    str | None,
    QueryParameter(
        name="starting_after", description="`id` of the previous page's last line.", schema_extra={"maxLength": 300}
    ),
]


@get(
    "/usage",
    **operation(
        "getUsage",
        "Get what databases used, from the ledger",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.OWN,
        answers={200: UsageReport},
        examples={200: EXAMPLE_REPORT},
        errors=(InvalidField,),
        texts={"text/csv": EXAMPLE_CSV},
    ),
)
async def get_usage(
    request: Call,
    since: From = None,
    until: To = None,
    group_by: By = GroupBy.DATABASE.value,
    granularity: Spans = Granularity.PERIOD.value,
    limit: Lines = 1000,
    starting_after: After = None,
) -> Response[Any]:
    clock = await read_clock()
    query = read_query(
        since=since,
        until=until,
        group_by=group_by,
        granularity=granularity,
        now=clock.now,
        team_ids=request.user.team_ids,
        databases=request.user.databases,
    )
    after = read_cursor(starting_after, query)
    if request.accept.best_match([_JSON, _CSV]) == _CSV:
        return Stream(
            _csv(query, clock),
            media_type=_CSV,  # to which Litestar adds the charset
            headers={"Content-Disposition": 'attachment; filename="usage.csv"', "Vary": "Accept"},
        )
    lines = await read_lines(query, clock, after=after, limit=limit + 1)
    report = UsageReport(
        data=await views(query.group_by, lines[:limit]),
        has_more=len(lines) > limit,
        since=query.since,
        until=query.until,
        group_by=query.group_by.value,
        granularity=query.granularity.value,
        as_of=clock.now,
    )
    return Response(encode(report), media_type=_JSON, headers={"Vary": "Accept"})


async def _csv(query: UsageQuery, clock: Clock) -> AsyncIterator[str]:
    yield csv_rows([], header=True)
    async for lines in stream_lines(query, clock, page=_CSV_PAGE):
        yield csv_rows(await views(query.group_by, lines), header=False)
