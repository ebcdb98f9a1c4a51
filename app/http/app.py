"""The API: the application and its layers, from the outermost inwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from litestar import Litestar, Request, Response
from litestar.types import ASGIApp

from app.accounts.audit_routes import AuditServices
from app.auth.client_address import parse_networks
from app.console.routes import console, console_head
from app.core.metrics.page import MetricsPage
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.tracing.spans import Tracer
from app.http.answers import StructResponse
from app.http.auditing import known_events
from app.http.belonging import belonging
from app.http.documentation import documentation
from app.http.errors import EXCEPTION_HANDLERS
from app.http.health import Readiness, live, read_metrics, ready
from app.http.opening import open_services
from app.http.requests import Requests
from app.http.routes import handlers_of, resources, signing_in
from app.http.state import AppState
from app.http.tracing import TracedRequests
from app.http.unread_body import UnreadBodies
from app.quotas.file import load_plans
from app.upkeep.inventory.gauges import installation_gauges

_BODY_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Routes:
    """The API's routes. To assemble them takes a tenth of a second, and they know no settings: applications may have
    the same ones, one after the other."""

    litestar: Litestar
    state: AppState
    with_metrics: bool
    with_console: bool


def create_app(
    settings: Settings,
    stopping: asyncio.Event | None = None,
    leaving: asyncio.Event | None = None,
    *,
    routes: Routes | None = None,
    tracer: Tracer | None = None,
) -> ASGIApp:
    """Creates the ASGI application. `stopping` is set when its server is about to stop: event streams end then, because
    the server waits for all answers. `leaving` is set before that: the application then says that it isn't ready, so
    that a proxy sends nothing more, and still serves. `routes` are those of an application that has ended; without them
    they are assembled. `tracer` is that of the process, if it traces. Raises `ValueError` for missing settings, and
    `InvalidSettings` for the file of plans."""
    plans = load_plans(settings.plans_file)
    box = SecretBox.from_setting(settings.secret_keys)
    if not settings.control_dsn:
        raise ValueError("HEADWATER_CONTROL_DSN is not set")
    routes = routes or assemble(with_metrics=serves_metrics(settings), with_console=settings.console)
    state = routes.state

    async def opening(app: Litestar, stack: AsyncExitStack) -> None:
        app.state.leaving = leaving or asyncio.Event()
        app.state.readiness = Readiness()
        if tracer is not None:
            await stack.enter_async_context(tracer.destination.running())
        app.state.controls = await open_services(
            stack, settings, plans, box, state, stopping or asyncio.Event(), tracer
        )
        app.state.belonging = belonging()
        actions, objects = known_events(handlers_of(app))
        state.audit = AuditServices(plans=plans, actions=actions, objects=objects)
        app.state.metrics = MetricsPage(installation_gauges)
        if settings.metrics_port and not serves_metrics(settings):
            await stack.enter_async_context(app.state.metrics.served(settings.metrics_host, settings.metrics_port))

    state.opening = opening
    layers: ASGIApp = Requests(UnreadBodies(routes.litestar, settings.request_body_timeout_seconds))
    if tracer is not None:
        layers = TracedRequests(layers, tracer, parse_networks(settings.trusted_proxies))
    return layers


def serves_metrics(settings: Settings) -> bool:
    """Whether the API's own port has the metrics."""
    return settings.metrics_port == settings.api_port


def assemble(*, with_metrics: bool, with_console: bool) -> Routes:
    """Routes for an application, which sets the state's `opening`."""
    state = AppState()

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            # Nothing of this application outlives it.
            stack.callback(vars(state).clear)
            stack.callback(app.state.clear)
            await state.opening(app, stack)
            yield

    litestar = Litestar(
        route_handlers=[
            resources(state),
            signing_in(state),
            live,
            ready,
            *([console, console_head] if with_console else []),
            *([read_metrics] if with_metrics else []),
        ],
        exception_handlers=EXCEPTION_HANDLERS,
        request_max_body_size=_BODY_LIMIT,
        openapi_config=None,
        before_request=answer_options,
        lifespan=[lifespan],
        logging_config=None,
        response_class=StructResponse,
    )
    litestar.register(documentation(handlers_of(litestar)))
    return Routes(litestar, state, with_metrics, with_console)


async def answer_options(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Answers OPTIONS before Litestar's own handler, which names only one of the methods when several handlers of a
    path were registered separately. RFC 9110, section 9.3.7."""
    if request.method != "OPTIONS":
        return None
    methods = request.app.route_handler_method_map[request.scope["path_template"]]
    return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
