"""Invitations into teams: made and withdrawn under `/api/v1/teams/{id}`, accepted by who has the token."""

from litestar import Response, delete, get, params, post
from litestar.params import FromPath

from app.accounts import invitation_service, team_service
from app.accounts.calls import Call, Injected, Made, settled
from app.accounts.team_examples import EXAMPLE_INVITATION, EXAMPLE_MEMBER, EXAMPLE_TOKEN
from app.accounts.team_schemas import (
    DAY_SECONDS,
    AcceptInvitation,
    InvitationView,
    InvitationWithToken,
    Invite,
    MemberView,
    WithdrawnInvitation,
    invitation_view,
    link_of,
    member_view,
)
from app.auth.roles import known_role
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    AlreadyAMember,
    ExceedsOwnKey,
    InvalidField,
    InvitationEnded,
    InvitationForAnother,
    NotFound,
    TeamLimitReached,
    TeamsLimitReached,
)
from app.web.envelope import Change, Page
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, path_id

_INVITED = "Invitation created. Keep the token: it is not shown again."
_WITHDRAWN, _JOINED = "Invitation withdrawn.", "You are in the team."


@post(
    "/teams/{id:str}/invitations",
    **operation(
        "createInvitation",
        "Invite somebody into a team: whoever accepts first joins it",
        action="invitation.create",
        scopes=(Scope.TEAMS_WRITE,),
        answers={201: InvitationWithToken},
        examples={
            201: InvitationWithToken(
                message=_INVITED, data=EXAMPLE_INVITATION, token=EXAMPLE_TOKEN, link=link_of(EXAMPLE_TOKEN)
            )
        },
        body=Invite,
        example={"role": "member", "expires_in_seconds": DAY_SECONDS},
        idempotent=True,
        errors=(TeamLimitReached,),
    ),
)
async def create_invitation(
    request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[Invite]
) -> Response[bytes]:
    async def change() -> Made:
        made, token = await invitation_service.invite(
            request.user,
            path_id(id, team_service.WHAT),
            known_role(data.role),
            seconds=data.expires_in_seconds,
            most=services.settings.invitations_per_team,
            email=data.email,
        )
        body = InvitationWithToken(message=_INVITED, data=invitation_view(made), token=token, link=link_of(token))
        return made.id, 201, body

    return await settled(request, services, change)


@get(
    "/teams/{id:str}/invitations",
    **operation(
        "listInvitations",
        "List a team's invitations, newest first",
        scopes=(Scope.TEAMS_READ,),
        answers={200: Page[InvitationView]},
        examples={200: Page(data=[EXAMPLE_INVITATION], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_invitations(
    request: Call, id: FromPath[str], limit: Limit = 25, starting_after: StartingAfterId = None
) -> Page[InvitationView]:
    team_id, after = path_id(id, team_service.WHAT), cursor_id(starting_after)
    page, has_more = await invitation_service.list_page(request.user, team_id, starting_after=after, limit=limit)
    return Page(data=[invitation_view(record) for record in page], has_more=has_more)


@delete(
    "/teams/{id:str}/invitations/{invitation_id:str}",
    **operation(
        "withdrawInvitation",
        "Withdraw an invitation: its token is nobody's from now on",
        action="invitation.withdraw",
        scopes=(Scope.TEAMS_WRITE,),
        answers={200: Change[WithdrawnInvitation]},
        examples={200: Change(message=_WITHDRAWN, data=WithdrawnInvitation(id=5))},
        idempotent=True,
        errors=(InvitationEnded,),
    ),
)
async def withdraw_invitation(
    request: Call, services: Injected, id: FromPath[str], invitation_id: FromPath[str]
) -> Response[bytes]:
    async def change() -> Made:
        team_id = path_id(id, team_service.WHAT)
        invitation = path_id(invitation_id, invitation_service.WHAT)
        record = await invitation_service.withdraw(request.user, team_id, invitation)
        return record.id, 200, Change(message=_WITHDRAWN, data=WithdrawnInvitation(id=record.id))

    return await settled(request, services, change)


@post(
    "/invitation_acceptances",
    **operation(
        "acceptInvitation",
        "Accept an invitation: join its team",
        action="invitation.accept",
        scopes=(Scope.TEAMS_WRITE,),
        reach=Reach.PERSON,
        answers={201: Change[MemberView]},
        examples={201: Change(message=_JOINED, data=EXAMPLE_MEMBER)},
        body=AcceptInvitation,
        example={"token": EXAMPLE_TOKEN},
        idempotent=True,
        errors=(
            NotFound,
            InvitationEnded,
            InvitationForAnother,
            AlreadyAMember,
            ExceedsOwnKey,
            TeamLimitReached,
            TeamsLimitReached,
        ),
    ),
)
async def accept_invitation(
    request: Call, services: Injected, data: params.JSONBody[AcceptInvitation]
) -> Response[bytes]:
    async def change() -> Made:
        record = await invitation_service.accept(request.user, data.token, services.places)
        return f"{record.team_id}/{record.user_id}", 201, Change(message=_JOINED, data=member_view(record))

    return await settled(request, services, change)
