"""`GET /api/v1/databases/{uuid}/metrics` and `GET /api/v1/teams/{id}/prometheus`."""

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.clock import utc_now
from app.core.errors import InvalidField, NotFound
from app.core.settings import Settings
from app.usage.metrics import asking, prometheus, service
from app.usage.metrics.asking import AUTOMATIC, STEPS
from app.usage.metrics.examples import EXAMPLE_METRICS, EXAMPLE_PAGE
from app.usage.metrics.names import MetricName
from app.usage.metrics.schemas import DatabaseMetrics
from app.web.envelope import Item
from app.web.operation import operation
from app.web.parameters import path_id, path_uuid

Call = Request[Principal, Any, Any]
_NAME = "|".join(MetricName)

Names = Annotated[
    str | None,
    QueryParameter(
        name="names",
        description=f"Metrics, divided by commas; all without it: {', '.join(MetricName)}.",
        schema_extra={"pattern": f"^({_NAME})(,({_NAME}))*$"},
    ),
]
Since = Annotated[
    str | None,
    QueryParameter(
        name="from",
        description="The earliest sample; a day before `to` without it.",
        schema_extra={"format": "date-time"},
    ),
]
Until = Annotated[
    str | None,
    QueryParameter(
        name="to", description="Where the samples end; now without it.", schema_extra={"format": "date-time"}
    ),
]
Step = Annotated[
    int,
    QueryParameter(
        name="step",
        description="Seconds of a point. Minutes are kept for a day, five minutes for a week, hours for 60 days; 0 "
        "chooses by the range.",
        schema_extra={"enum": [AUTOMATIC, *STEPS]},
    ),
]


class MetricServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings

    @property
    def interval(self) -> float:
        """Seconds between samples."""
        return self.settings.quota_interval_seconds


Injected = NamedDependency[SkipValidation[MetricServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


@get(
    "/databases/{uuid:str}/metrics",
    **operation(
        "getDatabaseMetrics",
        "What a database used over time, and how sure that is",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.DATABASE,
        answers={200: Item[DatabaseMetrics]},
        examples={200: Item(data=EXAMPLE_METRICS)},
        errors=(InvalidField,),
    ),
)
async def get_database_metrics(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    names: Names = None,
    since: Since = None,
    until: Until = None,
    step: Step = AUTOMATIC,
) -> Item[DatabaseMetrics]:
    database, now = path_uuid(uuid, "database"), utc_now()
    asked = asking.read(names, since, until, step, now)
    return Item(data=await service.metrics_of(database, request.user.team_ids, asked, now, services.interval))


@get(
    "/teams/{id:str}/prometheus",
    **operation(
        "getTeamPrometheus",
        "The newest metrics of a team's databases, for its own Prometheus",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.OWN,
        answers={200: None},
        examples={},
        texts={prometheus.MEDIA_TYPE: EXAMPLE_PAGE},
    ),
)
async def get_team_prometheus(request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
    team = path_id(id, "team")
    if team not in request.user.team_ids:
        raise NotFound("team")
    found = await prometheus.newest(team, request.user.databases)
    # In a thread: thousands of databases take a tenth of a second, in which other requests go on.
    page = await asyncio.to_thread(prometheus.render, found, utc_now(), service.longest_gap(services.interval))
    return Response(page, headers={"Content-Type": prometheus.CONTENT_TYPE})
