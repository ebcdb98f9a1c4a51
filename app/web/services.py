"""What routes work with, made once at start-up and handed to them as the dependency `services`."""

import msgspec
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.auth.admission import Admission
from app.auth.client_address import Network
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.egress.sender import Sender
from app.outbox.events import Notices
from app.outbox.starter import Starter
from app.pool.claim import ReadyMembers
from app.pool.nudge import Nudger
from app.store.notify import RowWatch
from app.web.idempotency import Idempotency


class Services(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    box: SecretBox
    admission: Admission
    trusted_proxies: tuple[Network, ...]
    starter: Starter
    members: ReadyMembers
    notices: Notices
    nudger: Nudger
    watch: RowWatch
    idempotency: Idempotency
    sender: Sender


Injected = NamedDependency[SkipValidation[Services]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
