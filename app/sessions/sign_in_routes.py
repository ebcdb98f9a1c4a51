"""Signing in. These routes know nobody yet: see `app.http.visitors`."""

from litestar import MediaType, Response, params, post

from app.audit.events import audited
from app.auth import sessions
from app.auth.scopes import Reach
from app.auth.sessions import SignInMethod
from app.core.errors import CrossOriginRefused, SignInRefused, require_found
from app.sessions.calls import Injected, Visit, open_session
from app.sessions.examples import EXAMPLE_LINK_TOKEN, EXAMPLE_SESSION
from app.sessions.links import use_link
from app.sessions.schemas import FollowedLink, SessionView, session_view
from app.web.envelope import Item, encode
from app.web.operation import Entry, operation

_SIGNED_IN = "Signed in."


@post(
    "/sign_ins/links",
    **operation(
        "followSignInLink",
        "Sign in by a link, once: the answer sets the session's cookie",
        action="session.open_by_link",
        entry=Entry.ANYBODY,
        reach=Reach.PERSON,
        answers={201: Item[SessionView]},
        examples={201: Item(message=_SIGNED_IN, data=EXAMPLE_SESSION)},
        body=FollowedLink,
        example={"token": EXAMPLE_LINK_TOKEN},
        errors=(SignInRefused, CrossOriginRefused),
    ),
)
async def follow_link(request: Visit, services: Injected, data: params.JSONBody[FollowedLink]) -> Response[bytes]:
    async with audited():
        user_id = await use_link(data.token)
        if user_id is None:
            raise SignInRefused("This link has been used, has expired, or never was. Ask for another one.")
        return await signed_in(request, services, user_id, SignInMethod.LINK)


async def signed_in(request: Visit, services: Injected, user_id: int, method: SignInMethod) -> Response[bytes]:
    """The answer with the new session's cookie."""
    made, cookie = await open_session(request, services, user_id, method)
    record = require_found(await sessions.find_of_user(user_id, made.uuid), "session")
    body = Item(message=_SIGNED_IN, data=session_view(record, record.id))
    return Response(encode(body), status_code=201, media_type=MediaType.JSON, headers={"Set-Cookie": cookie})
