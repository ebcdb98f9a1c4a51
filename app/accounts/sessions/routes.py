"""`/api/v1/sessions`: where a person is signed in. For people alone, not for keys."""

from litestar import Response, delete, get
from litestar.params import FromPath

from app.accounts.sessions.calls import Call, Injected, Made, settled
from app.accounts.sessions.examples import EXAMPLE_SESSION
from app.accounts.sessions.schemas import EndedSession, EndedSessions, SessionView, session_view
from app.auth import sessions
from app.auth.scopes import Reach
from app.core.errors import InvalidField, require_found
from app.web.envelope import Change, Page
from app.web.operation import Audience, operation
from app.web.parameters import Limit, StartingAfter, cursor_uuid, path_uuid
from app.web.site import session_cookie

WHAT = "session"
_ENDED, _ALL_ENDED = "Session ended.", "Signed out everywhere."


@get(
    "/sessions",
    **operation(
        "listSessions",
        "List the sessions of the person who is signed in, newest first",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Page[SessionView]},
        examples={200: Page(data=[EXAMPLE_SESSION], has_more=False)},
    ),
)
async def list_sessions(request: Call, limit: Limit = 25, starting_after: StartingAfter = None) -> Page[SessionView]:
    caller, cursor = request.user, cursor_uuid(starting_after)
    last = None if cursor is None else await sessions.find_of_user(caller.user_id, cursor)
    if cursor is not None and last is None:
        raise InvalidField("starting_after", "This is not the uuid of a session of yours.")
    page = await sessions.list_of_user(caller.user_id, after=None if last is None else last.id, limit=limit + 1)
    data = [session_view(record, caller.session_id) for record in page[:limit]]
    return Page(data=data, has_more=len(page) > limit)


@delete(
    "/sessions/{uuid:str}",
    **operation(
        "endSession",
        "End a session of one's own, as this one: its next request is refused",
        action="session.end",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Change[EndedSession]},
        examples={200: Change(message=_ENDED, data=EndedSession(uuid=EXAMPLE_SESSION.uuid))},
        idempotent=True,
    ),
)
async def end_session(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    own = False

    async def change() -> Made:
        nonlocal own
        asked = path_uuid(uuid, WHAT)
        record = require_found(await sessions.find_of_user(request.user.user_id, asked), WHAT)
        await sessions.end_session(request.user.user_id, record.id)
        own = record.id == request.user.session_id
        return str(record.uuid), 200, Change(message=_ENDED, data=EndedSession(uuid=record.uuid))

    answer = await settled(request, services, change)
    return _without_cookie(request, services, answer) if own else answer


@delete(
    "/sessions",
    **operation(
        "endAllSessions",
        "Sign out everywhere: end all sessions of one's own, this one too",
        action="session.end_all",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Change[EndedSessions]},
        examples={200: Change(message=_ALL_ENDED, data=EndedSessions(ended=3))},
        idempotent=True,
    ),
)
async def end_all_sessions(request: Call, services: Injected) -> Response[bytes]:
    async def change() -> Made:
        ended = await sessions.end_all_of(request.user.user_id)
        return request.user.user_id, 200, Change(message=_ALL_ENDED, data=EndedSessions(ended=len(ended)))

    return _without_cookie(request, services, await settled(request, services, change))


def _without_cookie(request: Call, services: Injected, answer: Response[bytes]) -> Response[bytes]:
    origin = services.site.origin(request.scope, request.headers)
    answer.headers["Set-Cookie"] = session_cookie(origin, "", 0)
    return answer
