"""`/api/v1/invitation_previews`: what the holder of an invitation's token sees before accepting it."""

from typing import Literal

from litestar import MediaType, Response, params, post

from app.accounts.sessions.calls import Visit
from app.accounts.sessions.examples import EXAMPLE_INVITATION_TOKEN, EXAMPLE_PREVIEW
from app.accounts.sessions.schemas import HeldInvitation, InvitationPreview
from app.auth.invitations import find_by_token
from app.auth.scopes import Reach
from app.auth.teams import get_team
from app.core.errors import CrossOriginRefused, NotAMember, NotFound, require_found
from app.web.envelope import Item, encode
from app.web.operation import COMPUTES, Audience, operation

_WHAT = "invitation"


@post(
    "/invitation_previews",
    **operation(
        "previewInvitation",
        "See the team and the role of an invitation before accepting it",
        action=COMPUTES,
        entry=Audience.ANYBODY,
        reach=Reach.PERSON,
        answers={200: Item[InvitationPreview]},
        examples={200: Item(data=EXAMPLE_PREVIEW)},
        body=HeldInvitation,
        example={"token": EXAMPLE_INVITATION_TOKEN},
        errors=(CrossOriginRefused, NotFound),
    ),
)
async def preview_invitation(request: Visit, data: params.JSONBody[HeldInvitation]) -> Response[bytes]:
    record = require_found(await find_by_token(data.token), _WHAT)
    try:
        team = await get_team(record.team_id, live=True)
    except NotAMember:
        raise NotFound(_WHAT) from None
    status: Literal["open", "accepted", "expired"] = "open"
    if not record.open:
        status = "expired" if record.accepted_at is None else "accepted"
    preview = InvitationPreview(
        team=team.name, role=record.role, email=record.email, status=status, expires_at=record.expires_at
    )
    return Response(encode(Item(data=preview)), media_type=MediaType.JSON)
