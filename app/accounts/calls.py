"""What the routes of accounts have in common."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.auth.principal import Principal
from app.core.settings import Settings
from app.outbox.workflow_starts import Accepted
from app.web.idempotency import Answer, Idempotency


class AccountServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    idempotency: Idempotency

    @property
    def places(self) -> tuple[int, int]:
        """The most members of a team, and the most teams of a person."""
        return self.settings.members_per_team, self.settings.teams_per_user


Injected = NamedDependency[SkipValidation[AccountServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
Call = Request[Principal, Any, Any]
Made = tuple[str | int, int, msgspec.Struct]
"""The subject of a change, and its answer with its status."""


async def settled(request: Call, services: AccountServices, change: Callable[[], Awaitable[Made]]) -> Response[bytes]:
    """Makes a change whose answer is known at once: it is stored in the same transaction, and what the answer shows
    only this once is stored nowhere else."""
    answers: list[Answer] = []

    async def begin() -> Accepted:
        subject, status, body = await change()
        answers.append(Answer(status, body))
        return Accepted(subject=str(subject), settled=True)

    async def finish(_: str) -> Answer:
        return answers[0]

    return await services.idempotency.run(request, begin=begin, finish=finish)
