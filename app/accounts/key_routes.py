"""`/api/v1/api_keys`: what keys do with other keys of their user."""

from typing import Annotated, Any

import msgspec
from litestar import Controller, Request, Response, delete, get, params, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, SkipValidation

from app.accounts import key_service
from app.accounts.key_examples import EXAMPLE_API_KEY, EXAMPLE_KEY, EXAMPLE_ROTATED, REVOKED_AT
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
from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.errors import ExceedsOwnKey, InvalidField, KeyLimitReached
from app.core.settings import Settings
from app.outbox.workflow_starts import Accepted
from app.web.envelope import Change, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, path_id

_CREATED = "API key created. Keep it: it is not shown again."
_CHANGED = "API key changed."
_ROTATED = "API key replaced. Keep the new one: it is not shown again."
_REVOKED = "API key revoked."
Minted = Annotated[
    bool, QueryParameter(name="minted", description="Revoke what it has minted too, what those have, and so on.")
]

Call = Request[Principal, Any, Any]


class KeyServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    idempotency: Idempotency


Injected = NamedDependency[SkipValidation[KeyServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


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
            errors=(ExceedsOwnKey, KeyLimitReached),
            links=("getApiKey", "updateApiKey", "rotateApiKey", "revokeApiKey"),
            link_by="id",
        ),
    )
    async def create(self, request: Call, services: Injected, data: params.JSONBody[CreateKey]) -> Response[bytes]:
        made: list[Answer] = []

        async def begin() -> Accepted:
            record, text = await key_service.mint(request.user, data, most=services.settings.api_keys_per_user)
            made.append(Answer(201, KeyWithSecret(message=_CREATED, data=key_view(record), api_key=text)))
            return Accepted(subject=str(record.id), settled=True)

        return await services.idempotency.run(request, begin=begin, finish=_first(made))

    @get(
        "",
        **operation(
            "listApiKeys",
            "List API keys, newest first, revoked ones too",
            scopes=(Scope.KEYS_READ,),
            reach=Reach.PERSON,
            answers={200: Page[KeyView]},
            examples={200: Page(data=[EXAMPLE_KEY], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_keys(
        self, request: Call, limit: Limit = 25, starting_after: StartingAfterId = None
    ) -> Page[KeyView]:
        after = cursor_id(starting_after)
        page, has_more = await key_service.list_page(request.user, starting_after=after, limit=limit)
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
            errors=(ExceedsOwnKey,),
        ),
    )
    async def change_key(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[KeyChange]
    ) -> Response[bytes]:
        made: list[Answer] = []

        async def begin() -> Accepted:
            record = await key_service.change(request.user, path_id(id, key_service.WHAT), data)
            made.append(Answer(200, Change(message=_CHANGED, data=key_view(record))))
            return Accepted(subject=str(record.id), settled=True)

        return await services.idempotency.run(request, begin=begin, finish=_first(made))

    @delete(
        "/{id:str}",
        **operation(
            "revokeApiKey",
            "Revoke an API key: its next request is refused",
            action="api_key.revoke",
            scopes=(Scope.KEYS_WRITE,),
            reach=Reach.PERSON,
            answers={200: Change[RevokedApiKey]},
            examples={
                200: Change(message=_REVOKED, data=RevokedApiKey(id=12, revoked_at=REVOKED_AT, minted_revoked=[]))
            },
            idempotent=True,
        ),
    )
    async def revoke(
        self, request: Call, services: Injected, id: FromPath[str], minted: Minted = False
    ) -> Response[bytes]:
        made: list[Answer] = []

        async def begin() -> Accepted:
            number = path_id(id, key_service.WHAT)
            record, also = await key_service.revoke(request.user, number, minted=minted)
            assert record.revoked_at is not None
            view = RevokedApiKey(id=record.id, revoked_at=record.revoked_at, minted_revoked=also)
            made.append(Answer(200, Change(message=_REVOKED, data=view)))
            return Accepted(subject=str(record.id), settled=True)

        return await services.idempotency.run(request, begin=begin, finish=_first(made))

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
        made: list[Answer] = []

        async def begin() -> Accepted:
            number = path_id(id, key_service.WHAT)
            record, text = await key_service.rotate(request.user, number, data.overlap_seconds)
            made.append(Answer(201, KeyWithSecret(message=_ROTATED, data=key_view(record), api_key=text)))
            return Accepted(subject=str(record.id), settled=True)

        return await services.idempotency.run(request, begin=begin, finish=_first(made))


def _first(made: list[Answer]) -> Any:
    """The answer of the change that was just made: it is stored in the same transaction, and a key's text is nowhere
    else."""

    async def finish(_: str) -> Answer:
        return made[0]

    return finish
