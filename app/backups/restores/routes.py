"""`/api/v1/databases/{uuid}/restorations`."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Request, Response, params, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation
from msgspec import Struct

from app.auth.principal import Principal
from app.auth.scopes import Scope
from app.backups.restores import records
from app.backups.restores.in_place import accept_in_place
from app.contracts.queues import restore_workflow_id
from app.core.errors import (
    BackupIncompatible,
    BackupNotCompleted,
    CapacityExhausted,
    DatabaseNotActive,
    RestorationFailed,
    RestorationInProgress,
    TeamLimitReached,
    TooManyUnderWay,
    require_found,
)
from app.databases import records as databases
from app.databases.examples import EXAMPLE_DATABASE, EXAMPLE_UUID
from app.databases.schemas import DatabaseView
from app.databases.views import masked_view
from app.operations.examples import EXAMPLE_DONE_REFERENCE, EXAMPLE_PENDING_REFERENCE
from app.operations.kinds import OperationStatus
from app.operations.records import OperationRecord, find_of_workflow
from app.operations.schemas import OperationReference
from app.operations.views import reference
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.envelope import AcceptedChange
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Timeout, Wait, path_uuid


class RestoreInPlace(Struct, kw_only=True, forbid_unknown_fields=True):
    backup_uuid: UUID
    """A completed backup of one of the caller's teams, of the same engine; of this database or of another one."""


Call = Request[Principal, Any, Any]
_RESTORED = "Database restored."
_RESTORING = "Database is being restored."


class RestoreServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    plans: Plans
    watch: RowWatch
    idempotency: Idempotency


Injected = NamedDependency[SkipValidation[RestoreServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


@post(
    "/databases/{uuid:str}/restorations",
    **operation(
        "restoreDatabase",
        "Give a database the data of a backup; its address, its credentials and its users stay",
        action="database.restore",
        scopes=(Scope.BACKUPS_READ, Scope.DATABASES_WRITE),
        answers={
            200: AcceptedChange[DatabaseView, OperationReference],
            202: AcceptedChange[DatabaseView, OperationReference],
        },
        examples={
            200: AcceptedChange(message=_RESTORED, data=EXAMPLE_DATABASE, operation=EXAMPLE_DONE_REFERENCE),
            202: AcceptedChange(message=_RESTORING, data=EXAMPLE_DATABASE, operation=EXAMPLE_PENDING_REFERENCE),
        },
        errors=(
            BackupIncompatible,
            BackupNotCompleted,
            DatabaseNotActive,
            RestorationInProgress,
            RestorationFailed,
            CapacityExhausted,
            TeamLimitReached,
            TooManyUnderWay,
        ),
        body=RestoreInPlace,
        example={"backup_uuid": EXAMPLE_UUID},
        idempotent=True,
    ),
)
async def restore_database(
    request: Call,
    services: Injected,
    uuid: FromPath[str],
    data: params.JSONBody[RestoreInPlace],
    wait: Wait = False,
    timeout: Timeout = 30,
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await accept_in_place(services.plans, request.user, path_uuid(uuid, "database"), data.backup_uuid)

    async def finish(subject: str) -> Answer:
        found = require_found(await records.find(UUID(subject)), "database")

        async def look() -> OperationRecord | None:
            seen = await find_of_workflow(found.database, restore_workflow_id(found.uuid))
            return seen if seen is not None and seen.ended else None

        ended = await services.watch.wait_for(found.database, look, timeout) if wait else None
        seen = ended or await find_of_workflow(found.database, restore_workflow_id(found.uuid))
        record = require_found(await databases.find(found.database), "database")
        if ended is not None and ended.status is not OperationStatus.SUCCEEDED:
            raise RestorationFailed(ended.uuid, ended.reason.code.value if ended.reason else None)
        body = AcceptedChange(
            message=_RESTORING if ended is None else _RESTORED,
            data=masked_view(services.plans, record),
            operation=msgspec.UNSET if seen is None else reference(seen),
        )
        return Answer(202 if ended is None else 200, body)

    return await services.idempotency.run(request, begin=begin, finish=finish)
