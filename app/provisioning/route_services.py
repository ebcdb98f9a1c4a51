"""What the routes of databases work with."""

from typing import Any

import msgspec
from litestar import Request
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.auth.principal import Principal
from app.blueprints.large_scripts import LargeScripts
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases.pool.claim import ReadyMembers, RefillNotices
from app.outbox.events import Notices
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.idempotency import Idempotency

Call = Request[Principal, Any, Any]


class DatabaseServices(msgspec.Struct, frozen=True, kw_only=True):
    """The services of this process."""

    settings: Settings
    plans: Plans
    box: SecretBox
    watch: RowWatch
    idempotency: Idempotency
    scripts: LargeScripts
    members: ReadyMembers
    notices: Notices
    refill_notices: RefillNotices


Injected = NamedDependency[SkipValidation[DatabaseServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
