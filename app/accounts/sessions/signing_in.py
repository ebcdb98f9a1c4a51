"""What every way of signing in ends with: a new session, and the answer that sets its cookie."""

from litestar import MediaType, Response

from app.accounts.sessions.calls import SessionServices, Visit, open_session
from app.accounts.sessions.schemas import session_view
from app.auth import sessions
from app.auth.sessions import SignInMethod
from app.core.errors import require_found
from app.web.envelope import Item, encode

SIGNED_IN = "Signed in."


async def signed_in(request: Visit, services: SessionServices, user_id: int, method: SignInMethod) -> Response[bytes]:
    """Call it in the transaction that uses up what the person signed in by."""
    made, cookie = await open_session(request, services, user_id, method)
    record = require_found(await sessions.find_of_user(user_id, made.uuid), "session")
    body = Item(message=SIGNED_IN, data=session_view(record, record.id))
    return Response(encode(body), status_code=201, media_type=MediaType.JSON, headers={"Set-Cookie": cookie})
