"""`/api/v1/passkeys`: a person's own. Signing in with one is in `sign_in_routes`."""

from uuid import UUID

from litestar import Response, delete, get, params, patch, post
from litestar.params import FromPath

from app.accounts.sessions import passkey_records, passkeys
from app.accounts.sessions.calls import Call, Injected, Made, settled
from app.accounts.sessions.examples import EXAMPLE_CREDENTIAL, EXAMPLE_OPTIONS, EXAMPLE_PASSKEY
from app.accounts.sessions.passkey_records import PasskeyRecord
from app.accounts.sessions.passkey_schemas import (
    AddPasskey,
    PasskeyOptions,
    PasskeyView,
    RemovedPasskey,
    RenamePasskey,
    passkey_view,
)
from app.audit.drafts import note, note_difference
from app.auth.scopes import Reach
from app.auth.users import check_name
from app.core.errors import InvalidField, PasskeyLimitReached, SignInRefused, require_found
from app.web.envelope import Change, Page
from app.web.operation import Audience, operation
from app.web.parameters import Limit, StartingAfter, cursor_uuid, path_uuid

WHAT = "passkey"
_ASKED, _ADDED, _RENAMED, _REMOVED = "Challenge made.", "Passkey added.", "Passkey renamed.", "Passkey removed."


@post(
    "/passkey_challenges",
    **operation(
        "createPasskeyChallenge",
        "Begin to add a passkey: what the browser asks the authenticator, once",
        action="passkey.ask",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={201: Change[PasskeyOptions]},
        examples={201: Change(message=_ASKED, data=PasskeyOptions(options=EXAMPLE_OPTIONS))},
        idempotent=True,
    ),
)
async def create_passkey_challenge(request: Call, services: Injected) -> Response[bytes]:
    async def change() -> Made:
        options = await passkeys.ask_for_new(request.user, services.site.origin(request.scope, request.headers))
        return request.user.user_id, 201, Change(message=_ASKED, data=PasskeyOptions(options=options))

    return await settled(request, services, change)


@post(
    "/passkeys",
    **operation(
        "addPasskey",
        "Add a passkey, by the authenticator's answer to a challenge",
        action="passkey.add",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={201: Change[PasskeyView]},
        examples={201: Change(message=_ADDED, data=EXAMPLE_PASSKEY)},
        body=AddPasskey,
        example={"name": "Laptop", "credential": EXAMPLE_CREDENTIAL},
        idempotent=True,
        errors=(SignInRefused, PasskeyLimitReached),
    ),
)
async def add_passkey(request: Call, services: Injected, data: params.JSONBody[AddPasskey]) -> Response[bytes]:
    async def change() -> Made:
        check_name(data.name)
        origin = services.site.origin(request.scope, request.headers)
        uuid = await passkeys.add(request.user, origin, data.name, data.credential)
        note(subject=(WHAT, uuid), changes={"name": (None, data.name)})
        return str(uuid), 201, Change(message=_ADDED, data=passkey_view(await _owned(request, uuid)))

    return await settled(request, services, change)


@get(
    "/passkeys",
    **operation(
        "listPasskeys",
        "List the passkeys of the person who is signed in, newest first",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Page[PasskeyView]},
        examples={200: Page(data=[EXAMPLE_PASSKEY], has_more=False)},
    ),
)
async def list_passkeys(request: Call, limit: Limit = 25, starting_after: StartingAfter = None) -> Page[PasskeyView]:
    user_id, cursor = request.user.user_id, cursor_uuid(starting_after)
    last = None if cursor is None else await passkey_records.find_passkey(user_id, cursor)
    if cursor is not None and last is None:
        raise InvalidField("starting_after", "This is not the uuid of a passkey of yours.")
    page = await passkey_records.list_passkeys(user_id, after=None if last is None else last.id, limit=limit + 1)
    return Page(data=[passkey_view(record) for record in page[:limit]], has_more=len(page) > limit)


@patch(
    "/passkeys/{uuid:str}",
    **operation(
        "renamePasskey",
        "Rename a passkey",
        action="passkey.rename",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Change[PasskeyView]},
        examples={200: Change(message=_RENAMED, data=EXAMPLE_PASSKEY)},
        body=RenamePasskey,
        example={"name": "Old laptop"},
        idempotent=True,
    ),
)
async def rename_passkey(
    request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[RenamePasskey]
) -> Response[bytes]:
    async def change() -> Made:
        check_name(data.name)
        record = await _owned(request, path_uuid(uuid, WHAT))
        await passkey_records.rename_passkey(record.id, data.name)
        note_difference({"name": record.name}, {"name": data.name})
        return str(record.uuid), 200, Change(message=_RENAMED, data=passkey_view(await _owned(request, record.uuid)))

    return await settled(request, services, change)


@delete(
    "/passkeys/{uuid:str}",
    **operation(
        "removePasskey",
        "Remove a passkey: nobody signs in with it any more; sessions stay",
        action="passkey.remove",
        entry=Audience.SESSION,
        reach=Reach.PERSON,
        answers={200: Change[RemovedPasskey]},
        examples={200: Change(message=_REMOVED, data=RemovedPasskey(uuid=EXAMPLE_PASSKEY.uuid))},
        idempotent=True,
    ),
)
async def remove_passkey(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    async def change() -> Made:
        record = await _owned(request, path_uuid(uuid, WHAT))
        await passkey_records.delete_passkey(record.id)
        note(changes={"name": (record.name, None)})
        return str(record.uuid), 200, Change(message=_REMOVED, data=RemovedPasskey(uuid=record.uuid))

    return await settled(request, services, change)


async def _owned(request: Call, uuid: UUID) -> PasskeyRecord:
    return require_found(await passkey_records.find_passkey(request.user.user_id, uuid), WHAT)
