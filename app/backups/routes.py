"""`/api/v1/backups`, under `/api/v1/databases/{uuid}` its `backups` and its `backup_policy`, and a team's
`backup_storage`."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, params, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation

from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import Scope
from app.backups import policies, service
from app.backups.examples import (
    EXAMPLE_BACKUP,
    EXAMPLE_BEING_TESTED,
    EXAMPLE_DELETED_BACKUP,
    EXAMPLE_POLICY,
    EXAMPLE_PROVEN,
    EXAMPLE_STORAGE,
    EXAMPLE_UNDER_WAY,
)
from app.backups.policies import BackupTerms, policy_view
from app.backups.records import BackupRecord
from app.backups.schemas import (
    BackupPolicyView,
    BackupStorage,
    BackupView,
    ChangeBackupPolicy,
    DeletedBackup,
    TakeBackup,
)
from app.backups.sources import BACKUP
from app.backups.views import view
from app.backups.waiting import await_end, await_restore_test, is_tested
from app.contracts.queues import backup_workflow_id
from app.core.errors import (
    BackupBeingRestored,
    BackupInUse,
    BackupNotCompleted,
    BackupProtected,
    DatabaseNotActive,
    InvalidField,
    TeamLimitReached,
    TooManyUnderWay,
    require_found,
)
from app.core.settings import Settings
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.operations.accepted import accepted_by
from app.operations.examples import EXAMPLE_DONE_REFERENCE, EXAMPLE_PENDING_REFERENCE
from app.operations.schemas import OperationReference
from app.outbox.workflow_starts import Accepted
from app.store.notify import RowWatch
from app.web.envelope import AcceptedChange, Change, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, Timeout, Wait, cursor_uuid, path_id, path_uuid

Call = Request[Principal, Any, Any]
_DELETED = "Backup deleted."
_TESTED, _TESTING = "Backup tested.", "The restore test is under way."
_TAKEN, _UNDER_WAY = "Backup taken.", "The backup is under way."


class BackupServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    terms: BackupTerms
    watch: RowWatch
    idempotency: Idempotency


Injected = NamedDependency[SkipValidation[BackupServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


@post(
    "/databases/{uuid:str}/backups",
    **operation(
        "takeBackup",
        "Take a backup of a database",
        action="backup.take",
        scopes=(Scope.BACKUPS_WRITE,),
        answers=dict.fromkeys((201, 202), AcceptedChange[BackupView, OperationReference]),
        examples={
            201: AcceptedChange(message=_TAKEN, data=EXAMPLE_BACKUP, operation=EXAMPLE_DONE_REFERENCE),
            202: AcceptedChange(message=_UNDER_WAY, data=EXAMPLE_UNDER_WAY, operation=EXAMPLE_PENDING_REFERENCE),
        },
        errors=(DatabaseNotActive, TeamLimitReached, TooManyUnderWay),
        body=TakeBackup,
        example={"description": "before the migration", "keep_days": 30},
        idempotent=True,
        links=("getBackup", "deleteBackup", "testBackup"),
    ),
)
async def take_backup(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    data: params.JSONBody[TakeBackup],
    wait: Wait = False,
    timeout: Timeout = 30,
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.take(services.terms, request.user, path_uuid(uuid, "database"), data)

    async def finish(subject: str) -> Answer:
        record = await service.get_any(UUID(subject))
        record = await await_end(services.watch, record, timeout if wait else 0)
        accepted = await accepted_by(record.database, backup_workflow_id(record.uuid))
        return Answer(202 if record.under_way else 201, _accepted(_outcome(record), view(record), accepted))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/databases/{uuid:str}/backups",
    **operation(
        "listDatabaseBackups",
        "List the backups of a database, newest first",
        scopes=(Scope.BACKUPS_READ,),
        answers={200: Page[BackupView]},
        examples={200: Page(data=[EXAMPLE_PROVEN], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_database_backups(
    request: Call, services: Injected, uuid: FromPath[str], limit: Limit = 25, starting_after: StartingAfter = None
) -> Page[BackupView]:
    database = await _owned(request, uuid)
    after = cursor_uuid(starting_after)
    page, has_more = await service.list_of_database(database, starting_after=after, limit=limit)
    return Page(data=[view(record) for record in page], has_more=has_more)


@get(
    "/backups",
    **operation(
        "listBackups",
        "List backups, newest first, those of deleted databases too",
        scopes=(Scope.BACKUPS_READ,),
        answers={200: Page[BackupView]},
        examples={200: Page(data=[EXAMPLE_PROVEN], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_backups(
    request: Call, services: Injected, limit: Limit = 25, starting_after: StartingAfter = None
) -> Page[BackupView]:
    page, has_more = await service.list_page(request.user, starting_after=cursor_uuid(starting_after), limit=limit)
    return Page(data=[view(record) for record in page], has_more=has_more)


@get(
    "/teams/{id:str}/backup_storage",
    **operation(
        "getBackupStorage",
        "What a team's backups take in the store, of what its tier has them take",
        scopes=(Scope.BACKUPS_READ,),
        answers={200: Item[BackupStorage]},
        examples={200: Item(data=EXAMPLE_STORAGE)},
    ),
)
async def get_backup_storage(request: Call, services: Injected, id: FromPath[str]) -> Item[BackupStorage]:
    return Item(data=await service.storage(services.terms, request.user, path_id(id, "team")))


@get(
    "/backups/{uuid:str}",
    **operation(
        "getBackup",
        "Get a backup, and what is known of it by restoring it",
        scopes=(Scope.BACKUPS_READ,),
        answers={200: Item[BackupView]},
        examples={200: Item(data=EXAMPLE_PROVEN)},
    ),
)
async def get_backup(request: Call, services: Injected, uuid: FromPath[str]) -> Item[BackupView]:
    return Item(data=view(await service.get(request.user, path_uuid(uuid, BACKUP))))


@delete(
    "/backups/{uuid:str}",
    **operation(
        "deleteBackup",
        "Delete a backup, or stop one that is being taken",
        action="backup.delete",
        scopes=(Scope.BACKUPS_WRITE,),
        role=Role.ADMIN,
        answers={200: Change[DeletedBackup]},
        examples={200: Change(message=_DELETED, data=EXAMPLE_DELETED_BACKUP)},
        errors=(BackupInUse, BackupBeingRestored, BackupProtected),
        idempotent=True,
    ),
)
async def delete_backup(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    async def begin() -> Accepted:
        locked = services.settings.backup_object_lock != "off"
        return await service.delete(request.user, path_uuid(uuid, BACKUP), locked_in_store=locked)

    async def finish(subject: str) -> Answer:
        return Answer(200, Change(message=_DELETED, data=DeletedBackup(uuid=UUID(subject))))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@post(
    "/backups/{uuid:str}/restore_tests",
    **operation(
        "testBackup",
        "Prove a backup by restoring it into a database that no team has",
        action="backup.test",
        scopes=(Scope.BACKUPS_WRITE,),
        answers=dict.fromkeys((201, 202), Change[BackupView]),
        examples={
            201: Change(message=_TESTED, data=EXAMPLE_PROVEN),
            202: Change(message=_TESTING, data=EXAMPLE_BEING_TESTED),
        },
        errors=(BackupNotCompleted, TooManyUnderWay),
        idempotent=True,
    ),
)
async def prove_backup(
    request: Call, services: Injected, uuid: FromPath[str], wait: Wait = False, timeout: Timeout = 30
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.test(services.terms, request.user, path_uuid(uuid, BACKUP))

    async def finish(subject: str) -> Answer:
        backup, number = service.read_test_subject(subject)
        record = await service.get_any(backup)
        record = await await_restore_test(services.watch, record, number, timeout if wait else 0)
        ended = is_tested(record, number)
        return Answer(201 if ended else 202, Change(message=_TESTED if ended else _TESTING, data=view(record)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/databases/{uuid:str}/backup_policy",
    **operation(
        "getBackupPolicy",
        "Get when a database is backed up, and how long its backups are kept",
        scopes=(Scope.BACKUPS_READ,),
        answers={200: Item[BackupPolicyView]},
        examples={200: Item(data=EXAMPLE_POLICY)},
    ),
)
async def get_backup_policy(request: Call, services: Injected, uuid: FromPath[str]) -> Item[BackupPolicyView]:
    return Item(data=await _policy(services, await _owned(request, uuid)))


@patch(
    "/databases/{uuid:str}/backup_policy",
    **operation(
        "changeBackupPolicy",
        "Change when a database is backed up, and how long its backups are kept",
        action="backup_policy.change",
        scopes=(Scope.BACKUPS_WRITE,),
        answers={200: Change[BackupPolicyView]},
        examples={200: Change(data=EXAMPLE_POLICY)},
        body=ChangeBackupPolicy,
        example={"every_hours": 12, "keep_days": 30, "keep_last": None},
        idempotent=True,
    ),
)
async def change_backup_policy(
    request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[ChangeBackupPolicy]
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.change_policy(services.terms, request.user, path_uuid(uuid, "database"), data)

    async def finish(subject: str) -> Answer:
        database = require_found(await databases.find(UUID(subject)), "database")
        return Answer(200, Change(data=await _policy(services, database)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def _owned(request: Call, uuid: str) -> DatabaseRecord:
    return await databases.get_owned(path_uuid(uuid, "database"), request.user.team_ids)


async def _policy(services: BackupServices, database: DatabaseRecord) -> BackupPolicyView:
    return policy_view(services.terms, database, await policies.find(database.id))


def _outcome(record: BackupRecord) -> str:
    """What has become of a backup that was asked for."""
    if record.under_way:
        return _UNDER_WAY
    return _TAKEN if record.completed_at is not None else f"The backup was not taken: its status is {record.status}."


def _accepted(
    message: str, data: BackupView, operation: OperationReference | msgspec.UnsetType
) -> AcceptedChange[BackupView, OperationReference]:
    return AcceptedChange(message=message, data=data, operation=operation)
