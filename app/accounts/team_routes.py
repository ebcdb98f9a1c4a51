"""`/api/v1/teams`: teams, and who is in them."""

from litestar import Controller, Response, delete, get, params, patch, post
from litestar.params import FromPath
from msgspec import UnsetType

from app.accounts import member_service, team_service
from app.accounts.calls import Call, Injected, Made, settled
from app.accounts.team_examples import EXAMPLE_MEMBER, EXAMPLE_TEAM
from app.accounts.team_schemas import (
    AddMember,
    ChangeMember,
    DeletedTeam,
    MemberView,
    RemovedMember,
    TeamFields,
    TeamView,
    member_view,
    team_view,
)
from app.auth.roles import Role, known_role
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    AlreadyAMember,
    ExceedsOwnKey,
    InvalidField,
    LastOwner,
    TeamHasDatabases,
    TeamLimitReached,
    TeamsLimitReached,
)
from app.web.envelope import Change, Item, Page
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, path_id

_CREATED, _RENAMED, _DELETED = "Team created.", "Team renamed.", "Team deleted."
_ADDED, _CHANGED, _REMOVED = "Member added.", "Member changed.", "Member removed."


class TeamController(Controller):
    path = "/teams"

    @post(
        "",
        **operation(
            "createTeam",
            "Create a team, which you own",
            action="team.create",
            scopes=(Scope.TEAMS_WRITE,),
            reach=Reach.PERSON,
            answers={201: Change[TeamView]},
            examples={201: Change(message=_CREATED, data=EXAMPLE_TEAM)},
            body=TeamFields,
            example={"name": "Orders"},
            idempotent=True,
            errors=(ExceedsOwnKey, TeamsLimitReached),
            links=("getTeam", "updateTeam", "deleteTeam", "listMembers"),
            link_by="id",
        ),
    )
    async def create(self, request: Call, services: Injected, data: params.JSONBody[TeamFields]) -> Response[bytes]:
        async def change() -> Made:
            made = await team_service.create(request.user, data.name, most=services.settings.teams_per_user)
            return made.id, 201, Change(message=_CREATED, data=team_view(made, Role.OWNER))

        return await settled(request, services, change)

    @get(
        "",
        **operation(
            "listTeams",
            "List your teams, newest first",
            scopes=(Scope.TEAMS_READ,),
            reach=Reach.PERSON,
            answers={200: Page[TeamView]},
            examples={200: Page(data=[EXAMPLE_TEAM], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_teams(
        self, request: Call, limit: Limit = 25, starting_after: StartingAfterId = None
    ) -> Page[TeamView]:
        after = cursor_id(starting_after)
        page, has_more = await team_service.list_page(request.user, starting_after=after, limit=limit)
        owned = [team_view(team, team_service.owned(request.user, team.id)) for team in page]
        return Page(data=owned, has_more=has_more)

    @get(
        "/{id:str}",
        **operation(
            "getTeam",
            "Get a team",
            scopes=(Scope.TEAMS_READ,),
            answers={200: Item[TeamView]},
            examples={200: Item(data=EXAMPLE_TEAM)},
        ),
    )
    async def get_team(self, request: Call, id: FromPath[str]) -> Item[TeamView]:
        team_id = path_id(id, team_service.WHAT)
        team = await team_service.get(request.user, team_id)
        return Item(data=team_view(team, team_service.owned(request.user, team_id)))

    @patch(
        "/{id:str}",
        **operation(
            "updateTeam",
            "Rename a team",
            action="team.change",
            scopes=(Scope.TEAMS_WRITE,),
            role=Role.OWNER,
            answers={200: Change[TeamView]},
            examples={200: Change(message=_RENAMED, data=EXAMPLE_TEAM)},
            body=TeamFields,
            example={"name": "Orders"},
            idempotent=True,
        ),
    )
    async def rename(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[TeamFields]
    ) -> Response[bytes]:
        async def change() -> Made:
            made = await team_service.rename(request.user, path_id(id, team_service.WHAT), data.name)
            return made.id, 200, Change(message=_RENAMED, data=team_view(made, Role.OWNER))

        return await settled(request, services, change)

    @delete(
        "/{id:str}",
        **operation(
            "deleteTeam",
            "Delete a team that has no databases",
            action="team.delete",
            scopes=(Scope.TEAMS_WRITE,),
            role=Role.OWNER,
            answers={200: Change[DeletedTeam]},
            examples={200: Change(message=_DELETED, data=DeletedTeam(id=1))},
            idempotent=True,
            errors=(TeamHasDatabases,),
        ),
    )
    async def delete_team(self, request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
        async def change() -> Made:
            team_id = path_id(id, team_service.WHAT)
            await team_service.delete(request.user, team_id)
            return team_id, 200, Change(message=_DELETED, data=DeletedTeam(id=team_id))

        return await settled(request, services, change)

    @post(
        "/{id:str}/members",
        **operation(
            "addMember",
            "Add somebody to a team who is in another one with you",
            action="member.add",
            scopes=(Scope.TEAMS_WRITE,),
            answers={201: Change[MemberView]},
            examples={201: Change(message=_ADDED, data=EXAMPLE_MEMBER)},
            body=AddMember,
            example={"email": "ada@example.com", "role": "member"},
            idempotent=True,
            errors=(AlreadyAMember, TeamLimitReached, TeamsLimitReached),
        ),
    )
    async def add(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[AddMember]
    ) -> Response[bytes]:
        async def change() -> Made:
            team_id, role = path_id(id, team_service.WHAT), known_role(data.role)
            user_id = None if isinstance(data.user_id, UnsetType) else data.user_id
            email = None if isinstance(data.email, UnsetType) else data.email
            if (user_id is None) == (email is None):
                raise InvalidField("user_id", "Expected either user_id or email.")
            record = await member_service.add(
                request.user, team_id, user_id=user_id, email=email, role=role, limits=services.places
            )
            return _subject(record.team_id, record.user_id), 201, Change(message=_ADDED, data=member_view(record))

        return await settled(request, services, change)

    @get(
        "/{id:str}/members",
        **operation(
            "listMembers",
            "List a team's members, who joined last first",
            scopes=(Scope.TEAMS_READ,),
            answers={200: Page[MemberView]},
            examples={200: Page(data=[EXAMPLE_MEMBER], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_members(
        self, request: Call, id: FromPath[str], limit: Limit = 25, starting_after: StartingAfterId = None
    ) -> Page[MemberView]:
        team_id, after = path_id(id, team_service.WHAT), cursor_id(starting_after)
        page, has_more = await member_service.list_page(request.user, team_id, starting_after=after, limit=limit)
        return Page(data=[member_view(record) for record in page], has_more=has_more)

    @get(
        "/{id:str}/members/{user_id:str}",
        **operation(
            "getMember",
            "Get a member of a team",
            scopes=(Scope.TEAMS_READ,),
            answers={200: Item[MemberView]},
            examples={200: Item(data=EXAMPLE_MEMBER)},
        ),
    )
    async def get_member(self, request: Call, id: FromPath[str], user_id: FromPath[str]) -> Item[MemberView]:
        team_id, person = path_id(id, team_service.WHAT), path_id(user_id, member_service.WHAT)
        return Item(data=member_view(await member_service.get(request.user, team_id, person)))

    @patch(
        "/{id:str}/members/{user_id:str}",
        **operation(
            "changeMember",
            "Give a member another role",
            action="member.change",
            scopes=(Scope.TEAMS_WRITE,),
            answers={200: Change[MemberView]},
            examples={200: Change(message=_CHANGED, data=EXAMPLE_MEMBER)},
            body=ChangeMember,
            example={"role": "admin"},
            idempotent=True,
            errors=(LastOwner,),
        ),
    )
    async def change_member(
        self,
        request: Call,
        services: Injected,
        id: FromPath[str],
        user_id: FromPath[str],
        data: params.JSONBody[ChangeMember],
    ) -> Response[bytes]:
        async def change() -> Made:
            team_id, person = path_id(id, team_service.WHAT), path_id(user_id, member_service.WHAT)
            record = await member_service.change(request.user, team_id, person, known_role(data.role))
            return _subject(team_id, person), 200, Change(message=_CHANGED, data=member_view(record))

        return await settled(request, services, change)

    @delete(
        "/{id:str}/members/{user_id:str}",
        **operation(
            "removeMember",
            "Remove a member from a team, or leave it",
            action="member.remove",
            scopes=(Scope.TEAMS_WRITE,),
            role=Role.VIEWER,
            answers={200: Change[RemovedMember]},
            examples={200: Change(message=_REMOVED, data=RemovedMember(team_id=1, user_id=3))},
            idempotent=True,
            errors=(LastOwner,),
        ),
    )
    async def remove(
        self, request: Call, services: Injected, id: FromPath[str], user_id: FromPath[str]
    ) -> Response[bytes]:
        async def change() -> Made:
            team_id, person = path_id(id, team_service.WHAT), path_id(user_id, member_service.WHAT)
            await member_service.remove(request.user, team_id, person)
            gone = RemovedMember(team_id=team_id, user_id=person)
            return _subject(team_id, person), 200, Change(message=_REMOVED, data=gone)

        return await settled(request, services, change)


def _subject(team_id: int, user_id: int) -> str:
    return f"{team_id}/{user_id}"
