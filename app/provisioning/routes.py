"""`/api/v1/databases`. Interface specification, sections 4.4 to 4.9."""

from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, params, patch, post
from litestar.params import FromPath
from msgspec import UNSET

from app.auth.principal import Principal
from app.auth.scopes import Scope
from app.blueprints.turns import TURNS, size_to_prepare
from app.contracts.base import DatabaseStatus
from app.core.errors import (
    CapacityExhausted,
    DeletionsPending,
    InvalidField,
    NotFound,
    PlanLimitExceeded,
    RevocationPending,
    TooManyUnderWay,
)
from app.databases.examples import (
    EXAMPLE_ACTIVE,
    EXAMPLE_DATABASE,
    EXAMPLE_DELETED,
    EXAMPLE_PROGRESS,
    EXAMPLE_PROVISIONING,
)
from app.databases.records import DatabaseRecord
from app.databases.schemas import (
    ChangeQuotas,
    CreateDatabase,
    DatabaseView,
    DeletedDatabase,
    RenameDatabase,
)
from app.databases.views import full_view, masked_view
from app.outbox.workflow_starts import Accepted
from app.provisioning import creation, service
from app.provisioning.created import CreatedDatabase, add_application, created
from app.provisioning.instant import create_at_once
from app.web.envelope import Change, Item, Page
from app.web.idempotency import Answer, Keeping, Kept
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, Timeout, Wait, cursor_uuid, path_uuid
from app.web.services import Injected, Services

_LIMITS_SECONDS = 5.0
"""How long a change of quotas waits for the engine before it answers that the limits will follow."""

Call = Request[Principal, Any, Any]


class DatabaseController(Controller):
    path = "/databases"

    @post(
        "",
        **operation(
            "createDatabase",
            "Create a database",
            scopes=(Scope.DATABASES_WRITE,),
            answers={201: CreatedDatabase, 202: CreatedDatabase},
            examples={
                201: CreatedDatabase(message="Database created.", data=EXAMPLE_ACTIVE),
                202: CreatedDatabase(
                    message="Database is being provisioned.", data=EXAMPLE_PROVISIONING, provisioning=EXAMPLE_PROGRESS
                ),
            },
            # 404: deleted while the create waited for it.
            errors=(NotFound, PlanLimitExceeded, CapacityExhausted, DeletionsPending, TooManyUnderWay),
            body=CreateDatabase,
            example={"name": "orders", "db_type": "postgres", "region": "us-east-1", "plan": "free"},
            idempotent=True,
            links=("getDatabase", "renameDatabase", "changeQuotas", "deleteDatabase", "applyBlueprint"),
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
        started = monotonic()
        claimed: DatabaseRecord | None = None
        at_once: Kept | None = None

        async def begin_and_finish(keeping: Keeping) -> Kept | None:
            nonlocal at_once
            at_once = await create_at_once(
                services.box, services.members, services.notices, request.user, data, keeping
            )
            return at_once

        async def begin() -> Accepted:
            nonlocal claimed
            made = await creation.create(services.box, request.user, data)
            claimed = made.claimed
            return made.accepted

        async def finish(subject: str) -> Answer:
            await turn.aclose()  # the blueprint is planned; what follows is waiting
            record = claimed or await _await_active(services, UUID(subject), timeout if wait else 0)
            if record.status is DatabaseStatus.ACTIVE and record.limits_applied < record.limits_revision:
                _, record = await _await_limits(services, record.uuid)
            answer = created(record, services.box, waited=int(monotonic() - started))
            if data.blueprint_uuid is not UNSET:
                await add_application(answer, services.watch, timeout - (monotonic() - started) if wait else 0)
            return Answer(201 if record.status is DatabaseStatus.ACTIVE else 202, answer)

        size = 0 if data.blueprint_uuid is UNSET else await size_to_prepare(request.user, data.blueprint_uuid)
        async with TURNS.turn(request.user.team_ids, size) as turn:
            answer = await services.idempotency.run(request, at_once=begin_and_finish, begin=begin, finish=finish)
        if claimed or at_once:
            services.nudger.nudge_soon()
        return answer

    @get(
        "",
        **operation(
            "listDatabases",
            "List databases, newest first",
            scopes=(Scope.DATABASES_READ,),
            answers={200: Page[DatabaseView]},
            examples={200: Page(data=[EXAMPLE_DATABASE], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_databases(
        self, request: Call, limit: Limit = 25, starting_after: StartingAfter = None
    ) -> Page[DatabaseView]:
        page, has_more = await service.list_page(request.user, starting_after=cursor_uuid(starting_after), limit=limit)
        return Page(data=[masked_view(record) for record in page], has_more=has_more)

    @get(
        "/{uuid:str}",
        **operation(
            "getDatabase",
            "Get a database, with its password",
            scopes=(Scope.DATABASES_READ,),
            answers={200: Item[DatabaseView]},
            examples={200: Item(data=EXAMPLE_ACTIVE)},
        ),
    )
    async def get_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Item[DatabaseView]:
        record = await service.get(request.user, path_uuid(uuid, "database"))
        return Item(data=full_view(record, services.box))

    @patch(
        "/{uuid:str}",
        **operation(
            "renameDatabase",
            "Rename a database",
            scopes=(Scope.DATABASES_WRITE,),
            answers={200: Change[DatabaseView]},
            examples={200: Change(data=EXAMPLE_DATABASE)},
            body=RenameDatabase,
            example={"name": "orders"},
            idempotent=True,
        ),
    )
    async def rename(
        self, request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[RenameDatabase]
    ) -> Response[bytes]:
        async def begin() -> Accepted:
            database = path_uuid(uuid, "database")
            return await service.rename(request.user, database, data.name)

        async def finish(subject: str) -> Answer:
            record = await service.get_any(UUID(subject))
            return Answer(200, Change(data=masked_view(record)))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @patch(
        "/{uuid:str}/quotas",
        **operation(
            "changeQuotas",
            "Change a database's quotas",
            scopes=(Scope.DATABASES_WRITE,),
            answers={200: Change[DatabaseView]},
            examples={200: Change(message="Quotas updated.", data=EXAMPLE_DATABASE)},
            errors=(PlanLimitExceeded,),
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
            return await service.change_quotas(request.user, database, data)

        async def finish(subject: str) -> Answer:
            in_force, record = await _await_limits(services, UUID(subject))
            message = "Quotas updated." if in_force else "Quotas updated; the limits follow in a moment."
            return Answer(200, Change(message=message, data=masked_view(record)))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @delete(
        "/{uuid:str}",
        **operation(
            "deleteDatabase",
            "Delete a database",
            scopes=(Scope.DATABASES_WRITE,),
            answers={200: Change[DeletedDatabase]},
            examples={200: Change(message="Database deleted.", data=EXAMPLE_DELETED)},
            errors=(RevocationPending,),
            idempotent=True,
        ),
    )
    async def delete_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            grace = timedelta(seconds=services.settings.deletion_grace_seconds)
            database = path_uuid(uuid, "database")
            return await service.delete(request.user, database, grace)

        async def finish(subject: str) -> Answer:
            return Answer(200, await _await_revoked(services, UUID(subject)))

        return await services.idempotency.run(request, begin=begin, finish=finish)


async def _await_active(services: Services, database: UUID, timeout: float) -> DatabaseRecord:
    async def look() -> DatabaseRecord | None:
        record = await service.get_any(database)
        return record if record.status is not DatabaseStatus.PROVISIONING else None

    seen = await services.watch.wait_for(database, look, timeout) if timeout else None
    record = seen or await service.get_any(database)
    if record.status is DatabaseStatus.DELETED:
        raise NotFound("database")
    return record


async def _await_limits(services: Services, database: UUID) -> tuple[bool, DatabaseRecord]:
    wanted = (await service.get_any(database)).limits_revision

    async def look() -> DatabaseRecord | None:
        record = await service.get_any(database)
        # A database that is still being made gets its limits when it is made.
        waits = record.status in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
        done = record.limits_applied >= wanted or not waits
        return record if done else None

    record = await services.watch.wait_for(database, look, _LIMITS_SECONDS)
    return (True, record) if record else (False, await service.get_any(database))


async def _await_revoked(services: Services, database: UUID) -> Change[DeletedDatabase]:
    async def look() -> DatabaseRecord | None:
        record = await service.get_any(database)
        # One that never became active is destroyed at once, so its answer can say that nothing is left.
        ended = record.destroyed_at if record.cancelled_provision_jobs else record.revoked_at
        return record if record.remote_since is None or ended else None

    record = await services.watch.wait_for(database, look, services.settings.revocation_timeout_seconds)
    record = record or await service.get_any(database)
    if record.remote_since is not None and record.revoked_at is None:
        raise RevocationPending(
            "The database is deleted, but its engine has not confirmed yet that all access has ended. "
            "The work goes on; retry with the same Idempotency-Key to learn of its end."
        )
    remote = record.remote_since is not None and record.destroyed_at is None
    return Change(
        message="Database deleted.",
        data=DeletedDatabase(
            uuid=record.uuid,
            cancelled_provision_jobs=record.cancelled_provision_jobs,
            destroy_scheduled_at=record.destroy_at if remote else None,
            has_remote_resources=remote,
        ),
    )
