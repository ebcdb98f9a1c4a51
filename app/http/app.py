"""The API: the application and its layers, from the outermost inwards."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, ControllerRouterHandler

from app.accounts.audit_routes import AuditServices, list_audit_events
from app.accounts.calls import AccountServices
from app.accounts.invitation_routes import (
    accept_invitation,
    create_invitation,
    list_invitations,
    withdraw_invitation,
)
from app.accounts.key_routes import KeyController
from app.accounts.routes import get_me
from app.accounts.team_routes import TeamController
from app.applications.routes import (
    ApplicationServices,
    apply_blueprint,
    get_application,
    list_applications,
    list_applications_of_blueprint,
)
from app.auth.admission import admission
from app.auth.client_address import parse_networks
from app.backups.policies import BackupTerms
from app.backups.routes import (
    BackupServices,
    change_backup_policy,
    delete_backup,
    get_backup,
    get_backup_policy,
    get_backup_storage,
    list_backups,
    list_database_backups,
    prove_backup,
    take_backup,
)
from app.blueprints.large_scripts import LargeScripts
from app.blueprints.routes import BlueprintController, BlueprintServices, validate_blueprint
from app.console.routes import console, console_head
from app.core.metrics.page import MetricsPage
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.temporal import connect_from_settings
from app.core.tracing.spans import Tracer
from app.credentials.routes import (
    CredentialServices,
    complete_credential_rotation,
    create_database_user,
    delete_database_user,
    get_credential_rotation,
    list_credential_rotations,
    list_credentials,
    list_database_users,
    rotate_credentials,
    rotate_database_user,
)
from app.egress.sender import Sender
from app.hosts.adapters import Adapters
from app.http.answers import StructResponse
from app.http.auditing import known_events
from app.http.authenticate import Authenticate
from app.http.belonging import belonging
from app.http.documentation import documentation
from app.http.errors import EXCEPTION_HANDLERS
from app.http.health import live, ready
from app.http.in_flight import InFlight
from app.http.metrics import read_metrics
from app.http.openapi import document
from app.http.options import answer_options
from app.http.requests import Requests
from app.http.state import AppState, RequestControls
from app.http.tracing import TracedRequests
from app.http.unread_body import UnreadBodies
from app.http.visitors import Visitors
from app.metrics.routes import MetricServices, get_database_metrics, get_team_prometheus
from app.operators.calls import OperatorServices
from app.operators.host_routes import add_host, drain_host, evacuate_host, remove_host, undrain_host
from app.operators.operation_routes import OperatorOperationController
from app.operators.routes import (
    list_audit_seals,
    list_findings,
    list_hosts,
    list_pools,
    pause_any_database,
    resume_any_database,
    run_consistency_check,
)
from app.outbox.events import Notices
from app.outbox.starter import Starter
from app.pool.claim import Nudger, ReadyMembers
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.catalog import list_database_types
from app.provisioning.operation_routes import OperationController, OperationServices
from app.provisioning.pause_routes import PauseController
from app.provisioning.route_services import DatabaseServices
from app.provisioning.routes import DatabaseController, list_deleted_databases
from app.queries.routes import (
    execute_query,
    execute_translated_query,
    get_query_allowance,
    list_query_executions,
)
from app.queries.service import Questions
from app.quotas.file import load_plans
from app.quotas.plans import Plans
from app.restores.routes import RestoreServices, restore_database
from app.sessions.calls import SessionServices
from app.sessions.invitation_routes import preview_invitation
from app.sessions.oidc_provider import Provider
from app.sessions.oidc_routes import (
    create_invited_sign_in_redirect,
    create_sign_in_redirect,
    get_sign_in_methods,
    use_provider,
)
from app.sessions.passkey_routes import (
    add_passkey,
    create_passkey_challenge,
    list_passkeys,
    remove_passkey,
    rename_passkey,
)
from app.sessions.routes import end_all_sessions, end_session, list_sessions
from app.sessions.sign_in_routes import create_sign_in_challenge, follow_link, get_session, use_passkey
from app.store.migrate import follow_migrations
from app.store.notify import RowWatch
from app.store.session import connected
from app.upkeep.inventory.gauges import installation_gauges
from app.usage.routes import get_usage
from app.web.event_streams import EventStreams
from app.web.idempotency import Idempotency
from app.web.operation import check_actions
from app.web.site import Site
from app.webhooks.ping import Pings
from app.webhooks.routes import WebhookController, WebhookServices

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
    """Creates the ASGI application. `stopping` is set when its server is about to stop, which waits for all answers:
    event streams end then. `leaving` is set before that, so that a proxy sends nothing more: it is not ready then, and
    serves all the same. `routes` are those of an application that has ended; without them they are assembled.
    `tracer` is that of the process, if it traces. Raises `ValueError` for missing settings, and `InvalidSettings` for
    the file of plans."""
    plans = load_plans(settings.plans_file)
    box = SecretBox.from_setting(settings.secret_keys)
    if not settings.control_dsn:
        raise ValueError("HEADWATER_CONTROL_DSN is not set")
    routes = routes or assemble(with_metrics=serves_metrics(settings), with_console=settings.console)
    state = routes.state

    async def opening(app: Litestar, stack: AsyncExitStack) -> None:
        app.state.leaving = leaving or asyncio.Event()
        if tracer is not None:
            await stack.enter_async_context(tracer.destination.running())
        app.state.controls = await _open(stack, settings, plans, box, state, stopping or asyncio.Event(), tracer)
        app.state.belonging = belonging()
        actions, objects = known_events(_handlers(app))
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
            _api(state),
            _signing_in(state),
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
    litestar.register(documentation(_handlers(litestar)))
    return Routes(litestar, state, with_metrics, with_console)


def describe() -> dict[str, Any]:
    """The API's description, without creating an application that could serve it."""
    return document(api_handlers())


def api_handlers() -> list[tuple[str, HTTPRouteHandler]]:
    """Every handler under `/api/v1`, with its path."""
    app = Litestar([_api(AppState()), _signing_in(AppState())], openapi_config=None)
    return _handlers(app)


def _api(state: AppState) -> Router:
    return Router(
        "/api/v1",
        route_handlers=[
            get_me,
            list_sessions,
            list_passkeys,
            _resource(
                lambda: state.sessions,
                end_session,
                end_all_sessions,
                create_passkey_challenge,
                add_passkey,
                rename_passkey,
                remove_passkey,
            ),
            _resource(lambda: state.audit, list_audit_events),
            _resource(
                lambda: state.accounts,
                KeyController,
                TeamController,
                create_invitation,
                list_invitations,
                withdraw_invitation,
                accept_invitation,
            ),
            list_database_types,
            get_usage,
            _resource(lambda: state.databases, DatabaseController, PauseController, list_deleted_databases),
            _resource(lambda: state.operations, OperationController),
            _resource(lambda: state.blueprints, BlueprintController, validate_blueprint),
            _resource(
                lambda: state.applications,
                apply_blueprint,
                list_applications,
                list_applications_of_blueprint,
                get_application,
            ),
            _resource(
                lambda: state.credentials,
                rotate_credentials,
                list_credential_rotations,
                get_credential_rotation,
                complete_credential_rotation,
                list_credentials,
                create_database_user,
                list_database_users,
                delete_database_user,
                rotate_database_user,
            ),
            _resource(lambda: state.restores, restore_database),
            _resource(
                lambda: state.backups,
                take_backup,
                list_database_backups,
                list_backups,
                get_backup_storage,
                get_backup,
                delete_backup,
                prove_backup,
                get_backup_policy,
                change_backup_policy,
            ),
            _resource(lambda: state.metrics, get_database_metrics, get_team_prometheus),
            _resource(lambda: state.webhooks, WebhookController),
            _resource(
                lambda: state.questions,
                execute_query,
                execute_translated_query,
                list_query_executions,
                get_query_allowance,
            ),
            _resource(
                lambda: state.operators,
                list_hosts,
                add_host,
                drain_host,
                undrain_host,
                evacuate_host,
                remove_host,
                list_pools,
                list_findings,
                list_audit_seals,
                run_consistency_check,
                pause_any_database,
                resume_any_database,
                OperatorOperationController,
            ),
        ],
        middleware=[Authenticate],
    )


def _signing_in(state: AppState) -> Router:
    """What needs no key and no session."""
    return Router(
        "/api/v1",
        route_handlers=[
            _resource(
                lambda: state.sessions,
                get_session,
                follow_link,
                create_sign_in_challenge,
                use_passkey,
                get_sign_in_methods,
                create_sign_in_redirect,
                create_invited_sign_in_redirect,
                use_provider,
                preview_invitation,
            )
        ],
        middleware=[Visitors],
    )


def _resource(services: Callable[[], object], *handlers: ControllerRouterHandler) -> Router:
    """Routes with what they work with, as their parameter `services`: one dependency for each route, which takes no
    arguments. Several are resolved in a task group, and arguments validated, with each request: either costs more than
    all else about it."""

    # A function, for Litestar copies its router: of an object's method it would copy the object too.
    def give() -> Any:
        return services()

    return Router("/", route_handlers=handlers, dependencies={"services": Provide(give, sync_to_thread=False)})


def _handlers(app: Litestar) -> list[tuple[str, HTTPRouteHandler]]:
    """Those of all paths. Raises `ValueError` for a route that hides from the audit log."""
    routes = (route for route in app.routes if isinstance(route, HTTPRoute))
    found = [(route.path_format, handler) for route in routes for handler in route.route_handlers]
    check_actions(handler for _, handler in found)
    return found


async def _open(
    stack: AsyncExitStack,
    settings: Settings,
    plans: Plans,
    box: SecretBox,
    state: AppState,
    stopping: asyncio.Event,
    tracer: Tracer | None,
) -> RequestControls:
    """Connects, fills the state, and returns what lets requests in. What is opened is closed with the stack."""
    assert settings.control_dsn is not None
    await stack.enter_async_context(connected(settings.control_dsn))
    await follow_migrations()
    watch = await stack.enter_async_context(RowWatch(settings.control_dsn).running())
    admitting = await stack.enter_async_context(
        admission(settings.control_dsn, sessions_per_minute=settings.session_requests_per_minute)
    )
    client = await connect_from_settings(settings, lazy=True, tracer=tracer)
    sender, adapters, starter, nudger = Sender(settings), Adapters(box), Starter(client), Nudger(client)
    members, notices = ReadyMembers(), Notices()
    state.questions = Questions(settings, plans, box, adapters)
    for part in (sender, adapters, starter, members, notices, nudger, state.questions.model):
        stack.push_async_callback(part.close)
    idempotency = Idempotency(
        box, starter, ttl=settings.idempotency_ttl_seconds, lease=settings.idempotency_lease_seconds
    )
    scripts = LargeScripts()
    state.databases = DatabaseServices(
        settings=settings,
        plans=plans,
        box=box,
        watch=watch,
        idempotency=idempotency,
        scripts=scripts,
        members=members,
        notices=notices,
        nudger=nudger,
    )
    streams = EventStreams(
        per_key=settings.event_streams_per_key,
        per_team=settings.event_streams_per_team,
        total=settings.event_streams,
        stopping=stopping,
        comment_seconds=settings.event_stream_comment_seconds,
    )
    await stack.enter_async_context(streams.running())
    state.operations = OperationServices(
        plans=plans, cancellations=CANCELLATIONS, watch=watch, streams=streams, idempotency=idempotency
    )
    state.blueprints = BlueprintServices(plans=plans, idempotency=idempotency, scripts=scripts)
    state.applications = ApplicationServices(
        plans=plans, box=box, watch=watch, idempotency=idempotency, scripts=scripts
    )
    state.credentials = CredentialServices(
        settings=settings, plans=plans, box=box, watch=watch, idempotency=idempotency, adapters=adapters
    )
    state.restores = RestoreServices(plans=plans, watch=watch, idempotency=idempotency)
    state.backups = BackupServices(
        settings=settings, terms=BackupTerms.of(plans, settings), watch=watch, idempotency=idempotency
    )
    state.accounts = AccountServices(settings=settings, idempotency=idempotency)
    proxies = parse_networks(settings.trusted_proxies)
    site = Site(settings.public_url, proxies)
    state.sessions = SessionServices(
        settings=settings,
        site=site,
        admission=admitting,
        box=box,
        provider=_provider(settings),
        idempotency=idempotency,
    )
    state.metrics = MetricServices(settings=settings)
    state.operators = OperatorServices(
        settings=settings, plans=plans, box=box, client=client, watch=watch, idempotency=idempotency
    )
    state.webhooks = WebhookServices(
        settings=settings,
        box=box,
        sender=sender,
        idempotency=idempotency,
        pings=Pings(box, sender, settings),
    )
    return RequestControls(
        admission=admitting,
        trusted_proxies=proxies,
        in_flight=InFlight(
            per_key=settings.requests_in_flight_per_key, per_address=settings.requests_in_flight_per_address
        ),
        site=site if settings.console else None,
        audit_refusals=settings.audit_refusals_per_hour,
    )


def _provider(settings: Settings) -> Provider | None:
    """Raises `ValueError` for half of what it takes."""
    if settings.oidc_issuer is None:
        return None
    if settings.oidc_client_id is None:
        raise ValueError("HEADWATER_OIDC_ISSUER is set, and HEADWATER_OIDC_CLIENT_ID is not")
    return Provider(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)
