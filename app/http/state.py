"""What the API opens at start-up and passes to routes and to the middleware."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec
from litestar import Litestar

from app.accounts.audit_routes import AuditServices
from app.accounts.calls import AccountServices
from app.accounts.sessions.calls import SessionServices
from app.auth.admission import Admission
from app.auth.client_address import Network
from app.backups.restores.routes import RestoreServices
from app.backups.routes import BackupServices
from app.blueprints.applications.routes import ApplicationServices
from app.blueprints.routes import BlueprintServices
from app.credentials.routes import CredentialServices
from app.http.in_flight import InFlight
from app.operators.calls import OperatorServices
from app.provisioning.operation_routes import OperationServices
from app.provisioning.route_services import DatabaseServices
from app.queries.service import Questions
from app.usage.metrics.routes import MetricServices
from app.web.site import Site
from app.webhooks.routes import WebhookServices


class RequestControls(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether a request is let in."""

    admission: Admission
    trusted_proxies: tuple[Network, ...]
    in_flight: InFlight
    site: Site | None
    """Where people sign in; None where there is no console."""
    audit_refusals: int
    """How many refusals of a user leave an event in an hour."""


class AppState:
    """What the routes of one application work with; empty until it has started, but for `opening`."""

    opening: Callable[[Litestar, AsyncExitStack], Awaitable[None]]
    """Fills the other attributes, and Litestar's own state. What it opens is closed with the stack."""
    databases: DatabaseServices
    operations: OperationServices
    blueprints: BlueprintServices
    applications: ApplicationServices
    credentials: CredentialServices
    restores: RestoreServices
    backups: BackupServices
    audit: AuditServices
    accounts: AccountServices
    metrics: MetricServices
    webhooks: WebhookServices
    questions: Questions
    sessions: SessionServices
    operators: OperatorServices
