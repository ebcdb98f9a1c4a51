"""What the routes of sessions have in common."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from litestar import MediaType, Request, Response
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from app.accounts.sessions.oidc_provider import Provider
from app.accounts.sessions.schemas import session_view
from app.audit.drafts import note
from app.auth import members, sessions
from app.auth.admission import Admission
from app.auth.principal import Principal
from app.auth.sessions import NewSession, SessionSpans, SignInMethod
from app.auth.users import lock_person
from app.core import context
from app.core.errors import require_found
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.outbox.workflow_starts import Accepted
from app.web.envelope import Item, encode
from app.web.idempotency import Answer, Idempotency
from app.web.site import Site, session_cookie, session_token


class SessionServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    site: Site
    admission: Admission
    box: SecretBox
    provider: Provider | None
    idempotency: Idempotency

    @property
    def limits(self) -> SessionSpans:
        return SessionSpans(idle=self.settings.session_idle_seconds, whole=self.settings.session_seconds)


Injected = NamedDependency[SkipValidation[SessionServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""
Call = Request[Principal, Any, Any]
Visit = Request[None, Any, Any]
"""A request of somebody who isn't signed in yet."""
Made = tuple[str | int, int, msgspec.Struct]
"""The subject of a change, and its answer with its status."""


async def settled(request: Call, services: SessionServices, change: Callable[[], Awaitable[Made]]) -> Response[bytes]:
    """Makes a change whose answer is known at once: it is stored in the same transaction."""
    answers: list[Answer] = []

    async def begin() -> Accepted:
        subject, status, body = await change()
        answers.append(Answer(status, body))
        return Accepted(subject=str(subject), settled=True)

    async def finish(_: str) -> Answer:
        return answers[0]

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def open_session(
    request: Visit, services: SessionServices, user_id: int, method: SignInMethod
) -> tuple[NewSession, str]:
    """Opens a session of this person; returns it and its `Set-Cookie`. The one that the browser had before ends. Call
    it in the transaction that uses up what they signed in by. They are the actor from here on."""
    origin = services.site.origin(request.scope, request.headers)
    before = session_token(request.headers, origin.cookie)
    if before is not None:
        # The person is locked before their sessions, by whoever ends one.
        await lock_person(user_id)
        await sessions.end_of_token(before)
    made = await sessions.open_session(
        user_id,
        method,
        address=request.scope["state"]["client_address"],
        user_agent=request.headers.get("User-Agent", ""),
        limits=services.limits,
    )
    context.actor.set(context.Actor(kind=context.ActorKind.SESSION, user_id=user_id))
    note(
        subject=("session", made.uuid),
        team_id=next(iter(await members.roles_of(user_id)), None),
        changes={"method": (None, method.value)},
    )
    return made, session_cookie(origin, made.token, services.settings.session_seconds)


SIGNED_IN = "Signed in."


async def signed_in(request: Visit, services: SessionServices, user_id: int, method: SignInMethod) -> Response[bytes]:
    """Opens a session, and returns the answer to the sign-in. Call it in the transaction that uses up what the person
    signed in by."""
    made, cookie = await open_session(request, services, user_id, method)
    record = require_found(await sessions.find_of_user(user_id, made.uuid), "session")
    body = Item(message=SIGNED_IN, data=session_view(record, record.id))
    return Response(encode(body), status_code=201, media_type=MediaType.JSON, headers={"Set-Cookie": cookie})
