"""`/api/v1/databases/{uuid}/credential_rotations`, `…/users`, `…/credentials` and `/api/v1/credential_rotations`."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, params, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    CredentialsPending,
    DatabaseNotActive,
    InvalidField,
    PlanLimitExceeded,
    RotationCancelled,
    RotationInProgress,
    RotationNotOverlapping,
    UserExists,
    UserNotActive,
    UserRotationNotInForce,
    require_found,
)
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.credentials import rotations, service, users
from app.credentials.examples import (
    EXAMPLE_COMPLETED_ROTATION,
    EXAMPLE_CREDENTIALS,
    EXAMPLE_MADE_ROTATION,
    EXAMPLE_MADE_USER,
    EXAMPLE_REMOVED_USER,
    EXAMPLE_ROTATION,
    EXAMPLE_USER,
)
from app.credentials.rotations import RotationRecord
from app.credentials.schemas import (
    CreateDatabaseUser,
    CredentialView,
    DatabaseUserView,
    RemovedDatabaseUser,
    RotateCredentials,
    RotateDatabaseUser,
    RotationView,
)
from app.credentials.sessions import open_sessions
from app.credentials.views import credential_views, made_rotation_view, rotation_view, user_view
from app.credentials.waiting import await_completed, await_removed, await_rotated_user, await_rotation, await_user
from app.databases import records
from app.databases.records import DatabaseRecord
from app.hosts.adapters import Adapters
from app.operations.accepted import accepted_on
from app.operations.examples import EXAMPLE_DONE_REFERENCE
from app.operations.kinds import OperationType
from app.operations.schemas import OperationReference
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.envelope import AcceptedChange, Change, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, StartingAfterName, cursor_uuid, path_uuid

Call = Request[Principal, Any, Any]
_ROTATED = "Credentials rotated. Keep the password: it is not shown again here."
_COMPLETED = "The previous credentials have ended."
_CREATED = "User created. Keep the password: it is not shown again."
_USER_ROTATED = "Password replaced. Keep the new one: it is not shown again."
_REMOVED = "User removed."


class CredentialServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    plans: Plans
    box: SecretBox
    watch: RowWatch
    idempotency: Idempotency
    adapters: Adapters

    @property
    def patience(self) -> float:
        """How many seconds an answer waits for the engine."""
        return self.settings.revocation_timeout_seconds


Injected = NamedDependency[SkipValidation[CredentialServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


@post(
    "/databases/{uuid:str}/credential_rotations",
    **operation(
        "rotateCredentials",
        "Replace a database's password; the previous one works beside it for a while",
        action="credentials.rotate",
        scopes=(Scope.DATABASES_WRITE,),
        reach=Reach.DATABASE,
        answers={200: AcceptedChange[RotationView, OperationReference]},
        examples={200: AcceptedChange(message=_ROTATED, data=EXAMPLE_MADE_ROTATION, operation=EXAMPLE_DONE_REFERENCE)},
        errors=(DatabaseNotActive, RotationInProgress, RotationCancelled, CredentialsPending),
        body=RotateCredentials,
        example={"overlap_seconds": 86_400},
        idempotent=True,
        links=("getCredentialRotation", "completeCredentialRotation"),
    ),
)
async def rotate_credentials(
    request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[RotateCredentials]
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.rotate(services.box, request.user, path_uuid(uuid, "database"), data)

    async def finish(subject: str) -> Answer:
        rotation = await await_rotation(services.watch, UUID(subject), services.patience)
        record = await _database_of(rotation)
        sessions = await open_sessions(services.adapters, services.box, record)
        accepted = await accepted_on(record.uuid, OperationType.ROTATE, rotation=rotation.uuid)
        view = made_rotation_view(record, rotation, sessions, services.box)
        return Answer(200, AcceptedChange(message=_ROTATED, data=view, operation=accepted))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/databases/{uuid:str}/credential_rotations",
    **operation(
        "listCredentialRotations",
        "List rotations of a database's credentials, newest first",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.DATABASE,
        answers={200: Page[RotationView]},
        examples={200: Page(data=[EXAMPLE_ROTATION], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_credential_rotations(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    limit: Limit = 25,
    starting_after: StartingAfter = None,
) -> Page[RotationView]:
    record = await _owned(request, uuid)
    page, has_more = await service.list_rotations(record, starting_after=cursor_uuid(starting_after), limit=limit)
    sessions = await open_sessions(services.adapters, services.box, record)
    return Page(data=[rotation_view(record, rotation, sessions) for rotation in page], has_more=has_more)


@get(
    "/credential_rotations/{uuid:str}",
    **operation(
        "getCredentialRotation",
        "Get a rotation of a database's credentials, without the password",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.OWN,
        answers={200: Item[RotationView]},
        examples={200: Item(data=EXAMPLE_ROTATION)},
    ),
)
async def get_credential_rotation(request: Call, services: Injected, uuid: FromPath[str]) -> Item[RotationView]:
    rotation = await service.get_rotation(request.user, path_uuid(uuid, service.ROTATION))
    record = await _database_of(rotation)
    return Item(data=rotation_view(record, rotation, await open_sessions(services.adapters, services.box, record)))


@post(
    "/credential_rotations/{uuid:str}/completions",
    **operation(
        "completeCredentialRotation",
        "End a rotation's overlap now: the previous password is refused",
        action="credential_rotation.complete",
        scopes=(Scope.DATABASES_WRITE,),
        reach=Reach.OWN,
        answers={200: Change[RotationView]},
        examples={200: Change(message=_COMPLETED, data=EXAMPLE_COMPLETED_ROTATION)},
        errors=(RotationNotOverlapping, CredentialsPending),
        idempotent=True,
    ),
)
async def complete_credential_rotation(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.complete(request.user, path_uuid(uuid, service.ROTATION))

    async def finish(subject: str) -> Answer:
        rotation = await await_completed(services.watch, UUID(subject), services.patience)
        record = await _database_of(rotation)
        return Answer(200, Change(message=_COMPLETED, data=rotation_view(record, rotation, None)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/databases/{uuid:str}/credentials",
    **operation(
        "listCredentials",
        "List every login of a database",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.DATABASE,
        answers={200: Page[CredentialView]},
        examples={200: Page(data=EXAMPLE_CREDENTIALS, has_more=False)},
    ),
)
async def list_credentials(request: Call, services: Injected, uuid: FromPath[str]) -> Page[CredentialView]:
    record = await _owned(request, uuid)
    latest = await rotations.list_of(record.id, after=None, limit=1)
    made = await users.list_of(record.id)
    sessions = await open_sessions(services.adapters, services.box, record)
    # One page: a plan bounds the users of a database.
    return Page(data=credential_views(record, latest[0] if latest else None, made, sessions), has_more=False)


@post(
    "/databases/{uuid:str}/users",
    **operation(
        "createDatabaseUser",
        "Create a further user of a database",
        action="database_user.create",
        scopes=(Scope.DATABASES_WRITE,),
        reach=Reach.DATABASE,
        answers={201: Change[DatabaseUserView]},
        examples={201: Change(message=_CREATED, data=EXAMPLE_MADE_USER)},
        errors=(DatabaseNotActive, UserExists, PlanLimitExceeded, CredentialsPending),
        body=CreateDatabaseUser,
        example={"name": "reporting", "access": "read_only", "connection_limit": 2},
        idempotent=True,
    ),
)
async def create_database_user(
    request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[CreateDatabaseUser]
) -> Response[bytes]:
    async def begin() -> Accepted:
        database = path_uuid(uuid, "database")
        return await service.add_user(services.plans, services.box, request.user, database, data)

    async def finish(subject: str) -> Answer:
        database, user = _pair(subject)
        made = await await_user(services.watch, database, user, services.patience)
        record = require_found(await records.find(database), "database")
        # Nobody has logged in with a password that nobody knows.
        return Answer(201, Change(message=_CREATED, data=user_view(record, made, {}, services.box)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/databases/{uuid:str}/users",
    **operation(
        "listDatabaseUsers",
        "List the further users of a database, newest first",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.DATABASE,
        answers={200: Page[DatabaseUserView]},
        examples={200: Page(data=[EXAMPLE_USER], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_database_users(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    limit: Limit = 25,
    starting_after: StartingAfterName = None,
) -> Page[DatabaseUserView]:
    record = await _owned(request, uuid)
    page, has_more = await service.list_users(record, starting_after=starting_after, limit=limit)
    sessions = await open_sessions(services.adapters, services.box, record) if page else None
    return Page(data=[user_view(record, user, sessions) for user in page], has_more=has_more)


@post(
    "/databases/{uuid:str}/users/{name:str}/rotations",
    **operation(
        "rotateDatabaseUser",
        "Replace the password of a user of a database; the previous one is refused from then on",
        action="database_user.rotate",
        scopes=(Scope.DATABASES_WRITE,),
        reach=Reach.DATABASE,
        answers={200: Change[DatabaseUserView]},
        examples={200: Change(message=_USER_ROTATED, data=EXAMPLE_MADE_USER)},
        errors=(DatabaseNotActive, UserNotActive, UserRotationNotInForce, CredentialsPending),
        body=RotateDatabaseUser,
        example={"end_sessions": True},
        idempotent=True,
    ),
)
async def rotate_database_user(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    name: FromPath[str],
    data: params.JSONBody[RotateDatabaseUser],
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.rotate_user(services.box, request.user, path_uuid(uuid, "database"), name, data)

    async def finish(subject: str) -> Answer:
        database, user, rotation = map(UUID, subject.split("/"))
        rotated = await await_rotated_user(services.watch, database, user, rotation, services.patience)
        record = require_found(await records.find(database), "database")
        sessions = await open_sessions(services.adapters, services.box, record)
        return Answer(200, Change(message=_USER_ROTATED, data=user_view(record, rotated, sessions, services.box)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@delete(
    "/databases/{uuid:str}/users/{name:str}",
    **operation(
        "deleteDatabaseUser",
        "Remove a user of a database; what it owns stays, as the database's",
        action="database_user.delete",
        scopes=(Scope.DATABASES_WRITE,),
        reach=Reach.DATABASE,
        answers={200: Change[RemovedDatabaseUser]},
        examples={200: Change(message=_REMOVED, data=EXAMPLE_REMOVED_USER)},
        errors=(CredentialsPending,),
        idempotent=True,
    ),
)
async def delete_database_user(
    request: Call, services: Injected, uuid: FromPath[str], name: FromPath[str]
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.remove_user(request.user, path_uuid(uuid, "database"), name)

    async def finish(subject: str) -> Answer:
        database, user = _pair(subject)
        await await_removed(services.watch, database, user, services.patience)
        return Answer(200, Change(message=_REMOVED, data=RemovedDatabaseUser(database_uuid=database, name=name)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def _owned(request: Call, uuid: str) -> DatabaseRecord:
    return await records.get_owned(path_uuid(uuid, "database"), request.user.team_ids)


async def _database_of(rotation: RotationRecord) -> DatabaseRecord:
    """Raises `NotFound` for one that was deleted meanwhile."""
    return await records.get_live(rotation.database)


def _pair(subject: str) -> tuple[UUID, UUID]:
    """Database and user, as the subject of a change of users names them."""
    database, _, user = subject.partition("/")
    return UUID(database), UUID(user)
