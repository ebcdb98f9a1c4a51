"""Opening the API: connections to what it works with, and what each resource's handlers get of that."""

import asyncio
from contextlib import AsyncExitStack

from app.accounts.calls import AccountServices
from app.accounts.sessions.calls import SessionServices
from app.accounts.sessions.oidc_provider import Provider
from app.auth.admission import admission
from app.auth.client_address import parse_networks
from app.backups.policies import BackupTerms
from app.backups.restores.routes import RestoreServices
from app.backups.routes import (
    BackupServices,
)
from app.blueprints.applications.routes import (
    ApplicationServices,
)
from app.blueprints.large_scripts import LargeScripts
from app.blueprints.routes import BlueprintServices
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.temporal import connect_from_settings
from app.core.tracing.spans import Tracer
from app.credentials.routes import (
    CredentialServices,
)
from app.databases.pool.claim import ReadyMembers, RefillNotices
from app.hosts.adapters import Adapters
from app.http.in_flight import InFlight
from app.http.state import AppState, RequestControls
from app.operators.calls import OperatorServices
from app.outbox.events import Notices
from app.outbox.starting import Starter
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.operation_routes import OperationServices
from app.provisioning.route_services import DatabaseServices
from app.queries.service import Questions
from app.quotas.plans import Plans
from app.store.migrate import follow_migrations
from app.store.notify import RowWatch
from app.store.session import connected
from app.usage.metrics.routes import MetricServices
from app.web.event_streams import EventStreams
from app.web.idempotency import Idempotency
from app.web.site import Site
from app.webhooks.egress.sender import Sender
from app.webhooks.ping import Pings
from app.webhooks.routes import WebhookServices


async def open_services(
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
    sender, adapters, starter = Sender(settings), Adapters(box), Starter(client)
    members, notices, refill_notices = ReadyMembers(), Notices(), RefillNotices()
    state.questions = Questions(settings, plans, box, adapters)
    for part in (sender, adapters, starter, members, notices, refill_notices, state.questions.model):
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
        refill_notices=refill_notices,
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
    """The provider that people sign in through, if one is set. Raises `ValueError` without its client id."""
    if settings.oidc_issuer is None:
        return None
    if settings.oidc_client_id is None:
        raise ValueError("HEADWATER_OIDC_ISSUER is set, and HEADWATER_OIDC_CLIENT_ID is not")
    return Provider(settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)
