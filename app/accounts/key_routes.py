"""`/api/v1/api_keys`: what keys do with other keys of their user."""

from typing import Annotated

from litestar import Controller, Response, delete, get, params, patch, post
from litestar.params import FromPath, QueryParameter

from app.accounts import key_service
from app.accounts.calls import Call, Injected, Made, settled
from app.accounts.key_examples import EXAMPLE_API_KEY, EXAMPLE_KEY, EXAMPLE_REVOKED, EXAMPLE_ROTATED
from app.accounts.key_schemas import (
    DEFAULT_OVERLAP_SECONDS,
    CreateKey,
    KeyChange,
    KeyView,
    KeyWithSecret,
    RevokedApiKey,
    RotateKey,
    key_view,
)
from app.auth.scopes import Reach, Scope
from app.core.errors import ExceedsOwnKey, InsufficientRole, InvalidField, KeyForSomeDatabases, KeyLimitReached
from app.web.envelope import Change, Item, Page
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, parse_id, path_id

_CREATED = "API key created. Keep it: it is not shown again."
_CHANGED = "API key changed."
_ROTATED = "API key replaced. Keep the new one: it is not shown again."
_REVOKED = "API key revoked."
Minted = Annotated[
    bool, QueryParameter(name="minted", description="Revoke what it has minted too, what those have, and so on.")
]
OfTeam = Annotated[
    str | None,
    QueryParameter(
        name="team_id",
        description="All members' keys that are for this team, to its admins.",
        schema_extra={"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
    ),
]


class KeyController(Controller):
    path = "/api_keys"

    @post(
        "",
        **operation(
            "createApiKey",
            "Mint an API key that may do no more than the one that asks",
            action="api_key.create",
            scopes=(Scope.KEYS_WRITE,),
            reach=Reach.PERSON,
            answers={201: KeyWithSecret},
            examples={201: KeyWithSecret(message=_CREATED, data=EXAMPLE_KEY, api_key=EXAMPLE_API_KEY)},
            body=CreateKey,
            example={
                "name": "nightly report",
                "permissions": ["databases:read", "queries:write"],
                "expires_at": "2027-01-01T00:00:00Z",
                "controls": {"requests_per_minute": 60, "allowed_ip_list": ["192.0.2.0/24"]},
            },
            idempotent=True,
            errors=(ExceedsOwnKey, InsufficientRole, KeyLimitReached),
            links=("getApiKey", "updateApiKey", "rotateApiKey", "revokeApiKey"),
            link_by="id",
        ),
    )
    async def create(self, request: Call, services: Injected, data: params.JSONBody[CreateKey]) -> Response[bytes]:
        async def make() -> Made:
            record, text = await key_service.mint(request.user, data, most=services.settings.api_keys_per_user)
            return record.id, 201, KeyWithSecret(message=_CREATED, data=key_view(record), api_key=text)

        return await settled(request, services, make)

    @get(
        "",
        **operation(
            "listApiKeys",
            "List API keys, newest first, revoked ones too; as an admin those of a team",
            scopes=(Scope.KEYS_READ,),
            reach=Reach.PERSON,
            answers={200: Page[KeyView]},
            examples={200: Page(data=[EXAMPLE_KEY], has_more=False)},
            errors=(InvalidField, InsufficientRole, KeyForSomeDatabases),
        ),
    )
    async def list_keys(
        self,
        request: Call,
        limit: Limit = 25,
        starting_after: StartingAfterId = None,
        team_id: OfTeam = None,
    ) -> Page[KeyView]:
        after = cursor_id(starting_after)
        if team_id is None:
            page, has_more = await key_service.list_page(request.user, starting_after=after, limit=limit)
        else:
            team = parse_id(team_id)
            if team is None:
                raise InvalidField("team_id", "Expected a number from 1 on.")
            page, has_more = await key_service.list_team_page(request.user, team, starting_after=after, limit=limit)
        return Page(data=[key_view(record) for record in page], has_more=has_more)

    @get(
        "/{id:str}",
        **operation(
            "getApiKey",
            "Get an API key",
            scopes=(Scope.KEYS_READ,),
            reach=Reach.PERSON,
            answers={200: Item[KeyView]},
            examples={200: Item(data=EXAMPLE_KEY)},
        ),
    )
    async def get_key(self, request: Call, id: FromPath[str]) -> Item[KeyView]:
        return Item(data=key_view(await key_service.get(request.user, path_id(id, key_service.WHAT))))

    @patch(
        "/{id:str}",
        **operation(
            "updateApiKey",
            "Rename an API key, or change what it may do",
            action="api_key.change",
            scopes=(Scope.KEYS_WRITE,),
            reach=Reach.PERSON,
            answers={200: Change[KeyView]},
            examples={200: Change(message=_CHANGED, data=EXAMPLE_KEY)},
            body=KeyChange,
            example={"name": "nightly report", "controls": {"requests_per_minute": 60}},
            idempotent=True,
            errors=(ExceedsOwnKey, InsufficientRole),
        ),
    )
    async def change_key(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[KeyChange]
    ) -> Response[bytes]:
        async def make() -> Made:
            record = await key_service.change(request.user, path_id(id, key_service.WHAT), data)
            return record.id, 200, Change(message=_CHANGED, data=key_view(record))

        return await settled(request, services, make)

    @delete(
        "/{id:str}",
        **operation(
            "revokeApiKey",
            "Revoke an API key: its next request is refused",
            action="api_key.revoke",
            scopes=(Scope.KEYS_WRITE,),
            reach=Reach.PERSON,
            answers={200: Change[RevokedApiKey]},
            examples={200: Change(message=_REVOKED, data=EXAMPLE_REVOKED)},
            idempotent=True,
        ),
    )
    async def revoke(
        self, request: Call, services: Injected, id: FromPath[str], minted: Minted = False
    ) -> Response[bytes]:
        async def make() -> Made:
            number = path_id(id, key_service.WHAT)
            record, also = await key_service.revoke(request.user, number, minted=minted)
            view = RevokedApiKey(
                id=record.id,
                revoked=record.revoked_at is not None,
                revoked_at=record.revoked_at,
                ended_teams=record.ended_teams,
                minted_revoked=also,
            )
            return record.id, 200, Change(message=_REVOKED, data=view)

        return await settled(request, services, make)

    @post(
        "/{id:str}/rotations",
        **operation(
            "rotateApiKey",
            "Replace an API key's text; the old one works beside it for a while",
            action="api_key.rotate",
            scopes=(Scope.KEYS_WRITE,),
            reach=Reach.PERSON,
            answers={201: KeyWithSecret},
            examples={201: KeyWithSecret(message=_ROTATED, data=EXAMPLE_ROTATED, api_key=EXAMPLE_API_KEY)},
            body=RotateKey,
            example={"overlap_seconds": DEFAULT_OVERLAP_SECONDS},
            idempotent=True,
            errors=(ExceedsOwnKey,),
        ),
    )
    async def rotate(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[RotateKey]
    ) -> Response[bytes]:
        async def make() -> Made:
            number = path_id(id, key_service.WHAT)
            record, text = await key_service.rotate(request.user, number, data.overlap_seconds)
            return record.id, 201, KeyWithSecret(message=_ROTATED, data=key_view(record), api_key=text)

        return await settled(request, services, make)
