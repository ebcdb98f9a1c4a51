"""The API: the application and its layers, from the outermost inwards."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from litestar import Litestar, Router
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp

from app.accounts.routes import get_me
from app.applications.routes import apply_blueprint, get_application
from app.auth.admission import admission
from app.auth.client_address import parse_networks
from app.blueprints.routes import BlueprintController, validate_blueprint
from app.core.metrics.page import MetricsPage
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.temporal import connect_from_settings
from app.egress.sender import Sender
from app.hosts.adapters import Adapters
from app.http.authenticate import Authenticate
from app.http.documentation import documentation
from app.http.errors import EXCEPTION_HANDLERS
from app.http.health import live, ready
from app.http.in_flight import InFlight
from app.http.metrics import read_metrics
from app.http.openapi import document
from app.http.options import answer_options
from app.http.request_metrics import RequestMetrics
from app.http.state import AppState
from app.http.unread_body import UnreadBodies
from app.outbox.events import Notices
from app.outbox.starter import Starter
from app.pool.claim import ReadyMembers
from app.pool.nudge import Nudger
from app.provisioning.catalog import list_database_types
from app.provisioning.routes import DatabaseController
from app.queries.routes import execute_query
from app.queries.service import Questions
from app.store.migrate import migrate
from app.store.notify import RowWatch
from app.store.session import connected
from app.upkeep.inventory.gauges import installation_gauges
from app.web.idempotency import Idempotency
from app.web.request_id import RequestIds
from app.web.services import Services
from app.webhooks.ping import Pings
from app.webhooks.routes import WebhookController

_BODY_LIMIT = 1024 * 1024


def create_app(settings: Settings) -> ASGIApp:
    """Creates the ASGI application. Raises `ValueError` for missing settings."""
    box = SecretBox.from_setting(settings.secret_keys)
    if not settings.control_dsn:
        raise ValueError("HEADWATER_CONTROL_DSN is not set")
    on_own_port = settings.metrics_port == settings.api_port

    opened = AppState()

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = opened.services = await _open_services(stack, settings, box)
            opened.pings = Pings(box, opened.services.sender, settings)
            opened.questions = _open_questions(stack, settings, box)
            app.state.metrics = MetricsPage(installation_gauges)
            app.state.in_flight = InFlight(
                per_key=settings.requests_in_flight_per_key, per_address=settings.requests_in_flight_per_address
            )
            if settings.metrics_port and not on_own_port:
                await stack.enter_async_context(app.state.metrics.served(settings.metrics_host, settings.metrics_port))
            yield

    litestar = Litestar(
        route_handlers=[_api(), live, ready, *([read_metrics] if on_own_port else [])],
        dependencies=opened.dependencies(),
        exception_handlers=EXCEPTION_HANDLERS,
        request_max_body_size=_BODY_LIMIT,
        openapi_config=None,
        before_request=answer_options,
        lifespan=[lifespan],
        logging_config=None,
    )
    litestar.register(documentation(_handlers(litestar)))
    return RequestIds(RequestMetrics(UnreadBodies(litestar, settings.request_body_timeout_seconds)))


def describe() -> dict[str, Any]:
    """The API's description, without creating an application that could serve it."""
    return document(api_handlers())


def api_handlers() -> list[tuple[str, HTTPRouteHandler]]:
    """Every handler under `/api/v1`, with its path."""
    app = Litestar([_api()], dependencies=AppState().dependencies(), openapi_config=None)
    return _handlers(app)


def _api() -> Router:
    return Router(
        "/api/v1",
        route_handlers=[
            get_me,
            list_database_types,
            DatabaseController,
            BlueprintController,
            validate_blueprint,
            apply_blueprint,
            get_application,
            WebhookController,
            execute_query,
        ],
        middleware=[Authenticate],
    )


def _handlers(app: Litestar) -> list[tuple[str, HTTPRouteHandler]]:
    routes = (route for route in app.routes if isinstance(route, HTTPRoute))
    return [(route.path_format, handler) for route in routes for handler in route.route_handlers]


async def _open_services(stack: AsyncExitStack, settings: Settings, box: SecretBox) -> Services:
    assert settings.control_dsn is not None
    await stack.enter_async_context(connected(settings.control_dsn))
    await migrate()
    watch = await stack.enter_async_context(RowWatch(settings.control_dsn).running())
    admitting = await stack.enter_async_context(admission(settings.control_dsn))
    client = await connect_from_settings(settings, lazy=True)
    sender = Sender(settings)
    stack.push_async_callback(sender.close)
    starter = Starter(client)
    stack.push_async_callback(starter.close)
    members, notices = ReadyMembers(), Notices()
    stack.push_async_callback(members.close)
    stack.push_async_callback(notices.close)
    nudger = Nudger(client)
    stack.push_async_callback(nudger.close)
    idempotency = Idempotency(
        box, starter, ttl=settings.idempotency_ttl_seconds, lease=settings.idempotency_lease_seconds
    )
    return Services(
        settings=settings,
        box=box,
        admission=admitting,
        trusted_proxies=parse_networks(settings.trusted_proxies),
        starter=starter,
        members=members,
        notices=notices,
        nudger=nudger,
        watch=watch,
        idempotency=idempotency,
        sender=sender,
    )


def _open_questions(stack: AsyncExitStack, settings: Settings, box: SecretBox) -> Questions:
    adapters = Adapters(box)
    stack.push_async_callback(adapters.close)
    questions = Questions(settings, box, adapters)
    stack.push_async_callback(questions.model.close)
    return questions
