"""What the routes of operators have in common."""

from typing import Any

import msgspec
from litestar import Request
from litestar.di import NamedDependency
from litestar.params import SkipValidation
from temporalio.client import Client

from app.auth.principal import Principal
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.idempotency import Idempotency


class OperatorServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    plans: Plans
    box: SecretBox
    client: Client
    watch: RowWatch
    idempotency: Idempotency


Injected = NamedDependency[SkipValidation[OperatorServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
Call = Request[Principal, Any, Any]
