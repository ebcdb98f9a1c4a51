"""`/api/v1/databases`. Interface specification, sections 4.4 to 4.9."""

from datetime import timedelta
from uuid import UUID

from litestar import Controller, Response, delete, get, params, patch, post
from litestar.params import FromPath
from msgspec import UnsetType

from app.auth.roles import Role
from app.auth.scopes import Reach, Scope
from app.backups.final import completed_of
from app.core.errors import (
    BackupNotCompleted,
    CapacityExhausted,
    DatabaseNotDeleted,
    DeletionProtected,
    DeletionsPending,
    DeletionUndone,
    InvalidField,
    NotFound,
    PlanLimitExceeded,
    RestorationInProgress,
    RevocationPending,
    SearchTooWide,
    TooManyUnderWay,
)
from app.databases.examples import (
    EXAMPLE_ACTIVE,
    EXAMPLE_DATABASE,
    EXAMPLE_DELETED,
    EXAMPLE_PROGRESS,
    EXAMPLE_PROVISIONING,
    EXAMPLE_RETAINED,
)
from app.databases.filters import read_filters
from app.databases.records import DatabaseRecord
from app.databases.schemas import (
    ChangeDatabase,
    ChangeQuotas,
    CreateDatabase,
    DatabaseView,
    DeletedDatabase,
    DeletedDatabaseView,
)
from app.databases.views import deleted_view, full_view, masked_view
from app.operations.accepted import accepted_on
from app.operations.examples import (
    EXAMPLE_DONE_REFERENCE,
    EXAMPLE_PENDING_REFERENCE,
    EXAMPLE_WAITING_REFERENCE,
)
from app.operations.kinds import OperationType
from app.operations.schemas import OperationReference
from app.outbox.workflow_starts import Accepted
from app.provisioning import service
from app.provisioning.creation import CreatedDatabase, DatabaseCreation
from app.provisioning.parameters import EngineFilter, LabelFilter, NameFilter, PlanFilter, RegionFilter, StatusFilter
from app.provisioning.route_services import Call, Injected
from app.provisioning.undeletion import undelete_owned
from app.provisioning.waiting import await_access, await_limits, await_revoked
from app.web.envelope import AcceptedChange, Change, Data, Item, Page
from app.web.idempotency import Answer
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, Timeout, Wait, cursor_uuid, path_uuid


class DatabaseController(Controller):
    path = "/databases"

    @post(
        "",
        **operation(
            "createDatabase",
            "Create a database",
            action="database.create",
            scopes=(Scope.DATABASES_WRITE,),
            answers={201: CreatedDatabase, 202: CreatedDatabase},
            examples={
                201: CreatedDatabase(
                    message="Database created.", data=EXAMPLE_ACTIVE, operation=EXAMPLE_DONE_REFERENCE
                ),
                202: CreatedDatabase(
                    message="Database is being provisioned.",
                    data=EXAMPLE_PROVISIONING,
                    operation=EXAMPLE_PENDING_REFERENCE,
                    provisioning=EXAMPLE_PROGRESS,
                ),
            },
            # 404: deleted while the create waited for it.
            errors=(
                NotFound,
                BackupNotCompleted,
                PlanLimitExceeded,
                CapacityExhausted,
                DeletionsPending,
                TooManyUnderWay,
            ),
            body=CreateDatabase,
            example={
                "name": "orders",
                "db_type": "postgres",
                "region": "us-east-1",
                "plan": "free",
                "labels": {"env": "production"},
            },
            idempotent=True,
            links=(
                "getDatabase",
                "renameDatabase",
                "changeQuotas",
                "deleteDatabase",
                "undeleteDatabase",
                "pauseDatabase",
                "resumeDatabase",
                "applyBlueprint",
                "listBlueprintApplications",
                "rotateCredentials",
                "listCredentialRotations",
                "listCredentials",
                "createDatabaseUser",
                "listDatabaseUsers",
                "takeBackup",
                "listDatabaseBackups",
                "getBackupPolicy",
                "changeBackupPolicy",
                "restoreDatabase",
                "getDatabaseMetrics",
                "getQueryAllowance",
            ),
        ),
    )
    async def create(
        self,
        request: Call,
        services: Injected,
        data: params.JSONBody[CreateDatabase],
        wait: Wait = False,
        timeout: Timeout = 30,
    ) -> Response[bytes]:
        creation = DatabaseCreation(
            request.user,
            data,
            plans=services.plans,
            box=services.box,
            members=services.members,
            watch=services.watch,
            scripts=services.scripts,
            wait_seconds=timeout if wait else 0,
            limits_seconds=services.settings.limits_timeout_seconds,
        )
        response = await services.idempotency.run(
            request,
            immediate=creation.immediate,
            begin=creation.begin,
            finish=creation.finish,
            during_begin=creation.limit_preparation(),
        )
        if creation.claimed:
            services.notices.send_soon()
            services.refill_notices.send_soon()
        return response

    @get(
        "",
        **operation(
            "listDatabases",
            "List databases, newest first; those that match all filters",
            scopes=(Scope.DATABASES_READ,),
            reach=Reach.OWN,
            answers={200: Page[DatabaseView]},
            examples={200: Page(data=[EXAMPLE_DATABASE], has_more=False)},
            errors=(InvalidField, SearchTooWide),
        ),
    )
    async def list_databases(
        self,
        request: Call,
        services: Injected,
        limit: Limit = 25,
        starting_after: StartingAfter = None,
        name: NameFilter = None,
        status: StatusFilter = (),
        db_type: EngineFilter = (),
        region: RegionFilter = (),
        plan: PlanFilter = (),
        label: LabelFilter = (),
    ) -> Page[DatabaseView]:
        filters = read_filters(name=name, status=status, db_type=db_type, region=region, plan=plan, label=label)
        after = cursor_uuid(starting_after)
        page, has_more = await service.list_page(request.user, filters, starting_after=after, limit=limit)
        return Page(data=[masked_view(services.plans, record) for record in page], has_more=has_more)

    @get(
        "/{uuid:str}",
        **operation(
            "getDatabase",
            "Get a database, with its password where your role isn't viewer",
            scopes=(Scope.DATABASES_READ,),
            reach=Reach.DATABASE,
            answers={200: Item[DatabaseView]},
            examples={200: Item(data=EXAMPLE_ACTIVE)},
        ),
    )
    async def get_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Item[DatabaseView]:
        record = await service.get(request.user, path_uuid(uuid, "database"))
        if record.team_id is not None and request.user.role_in(record.team_id) is Role.VIEWER:
            return Item(data=masked_view(services.plans, record))
        return Item(data=full_view(services.plans, record, services.box))

    @patch(
        "/{uuid:str}",
        **operation(
            "renameDatabase",
            "Rename, protect or label a database, or set when it deletes itself",
            action="database.change",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.DATABASE,
            answers={200: Change[DatabaseView]},
            examples={200: Change(data=EXAMPLE_DATABASE)},
            body=ChangeDatabase,
            example={"name": "orders", "labels": {"env": "production"}},
            idempotent=True,
        ),
    )
    async def change(
        self, request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[ChangeDatabase]
    ) -> Response[bytes]:
        async def begin() -> Accepted:
            return await service.change(request.user, path_uuid(uuid, "database"), data)

        async def finish(subject: str) -> Answer:
            record = await service.get_any(UUID(subject))
            return Answer(200, Change(data=masked_view(services.plans, record)))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @patch(
        "/{uuid:str}/quotas",
        **operation(
            "changeQuotas",
            "Change a database's quotas",
            action="database.change_quotas",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.DATABASE,
            answers={200: AcceptedChange[DatabaseView, OperationReference]},
            examples={
                200: AcceptedChange(message="Quotas updated.", data=EXAMPLE_DATABASE, operation=EXAMPLE_DONE_REFERENCE)
            },
            errors=(PlanLimitExceeded, TooManyUnderWay),
            body=ChangeQuotas,
            example={"connection_hard_limit": 5, "storage_hard_limit_gb": None},
            idempotent=True,
        ),
    )
    async def change_quotas(
        self, request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[ChangeQuotas]
    ) -> Response[bytes]:
        async def begin() -> Accepted:
            database = path_uuid(uuid, "database")
            return await service.change_quotas(services.plans, request.user, database, data)

        async def finish(subject: str) -> Answer:
            database, revision = service.read_limits_subject(subject)
            timeout = services.settings.limits_timeout_seconds
            in_force, record = await await_limits(services.watch, database, timeout, revision=revision)
            message = "Quotas updated." if in_force else "Quotas updated; the limits follow in a moment."
            accepted = await accepted_on(database, OperationType.LIMITS, revision=revision)
            return Answer(200, _accepted(message, masked_view(services.plans, record), accepted))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @delete(
        "/{uuid:str}",
        **operation(
            "deleteDatabase",
            "Delete a database",
            action="database.delete",
            scopes=(Scope.DATABASES_WRITE,),
            role=Role.ADMIN,
            reach=Reach.DATABASE,
            answers={200: AcceptedChange[DeletedDatabase, OperationReference]},
            examples={
                200: AcceptedChange(
                    message="Database deleted.", data=EXAMPLE_DELETED, operation=EXAMPLE_WAITING_REFERENCE
                )
            },
            errors=(DeletionProtected, DeletionUndone, RestorationInProgress, RevocationPending),
            idempotent=True,
        ),
    )
    async def delete_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            grace = timedelta(seconds=services.settings.deletion_grace_seconds)
            database = path_uuid(uuid, "database")
            return await service.delete(services.plans, request.user, database, grace)

        async def finish(subject: str) -> Answer:
            record = await await_revoked(services.watch, UUID(subject), services.settings.revocation_timeout_seconds)
            accepted = await accepted_on(record.uuid, OperationType.DELETE)
            return Answer(200, _accepted("Database deleted.", _deleted(record), accepted))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @post(
        "/{uuid:str}/undeletions",
        **operation(
            "undeleteDatabase",
            "Undelete a database, as it was, while its data is kept",
            action="database.undelete",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.DATABASE,
            answers={200: AcceptedChange[DatabaseView, OperationReference]},
            examples={
                200: AcceptedChange(
                    message="Database undeleted.", data=EXAMPLE_DATABASE, operation=EXAMPLE_DONE_REFERENCE
                )
            },
            errors=(DatabaseNotDeleted, PlanLimitExceeded, CapacityExhausted),
            idempotent=True,
        ),
    )
    async def undelete_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            return await undelete_owned(services.plans, request.user, path_uuid(uuid, "database"))

        async def finish(subject: str) -> Answer:
            timeout = services.settings.revocation_timeout_seconds
            open_again, record = await await_access(services.watch, UUID(subject), timeout)
            message = "Database undeleted." if open_again else "Database undeleted; its access follows in a moment."
            accepted = await accepted_on(record.uuid, OperationType.UNDELETE)
            return Answer(200, _accepted(message, masked_view(services.plans, record), accepted))

        return await services.idempotency.run(request, begin=begin, finish=finish)


@get(
    "/deleted_databases",
    **operation(
        "listDeletedDatabases",
        "List deleted databases that can be undeleted, the last deleted one first",
        scopes=(Scope.DATABASES_READ,),
        answers={200: Page[DeletedDatabaseView]},
        examples={200: Page(data=[EXAMPLE_RETAINED], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_deleted_databases(
    request: Call,
    services: Injected,
    limit: Limit = 25,
    starting_after: StartingAfter = None,
    name: NameFilter = None,
    db_type: EngineFilter = (),
    region: RegionFilter = (),
    plan: PlanFilter = (),
    label: LabelFilter = (),
) -> Page[DeletedDatabaseView]:
    filters = read_filters(name=name, db_type=db_type, region=region, plan=plan, label=label)
    after = cursor_uuid(starting_after)
    page, has_more = await service.list_deleted(request.user, filters, starting_after=after, limit=limit)
    final = await completed_of([record.uuid for record in page])
    data = [deleted_view(services.plans, record, final.get(record.uuid)) for record in page]
    return Page(data=data, has_more=has_more)


def _accepted(
    message: str, data: Data, operation: OperationReference | UnsetType
) -> AcceptedChange[Data, OperationReference]:
    return AcceptedChange(message=message, data=data, operation=operation)


def _deleted(record: DatabaseRecord) -> DeletedDatabase:
    remote = record.remote_since is not None and record.destroyed_at is None
    return DeletedDatabase(
        uuid=record.uuid,
        cancelled_provision_jobs=record.cancelled_provision_jobs,
        destroy_scheduled_at=record.destroy_at if remote else None,
        has_remote_resources=remote,
    )
