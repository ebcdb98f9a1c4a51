"""`/api/v1/databases/{uuid}/blueprint_applications` and `/api/v1/blueprint_applications`. Interface specification,
sections 4.10 and 4.11."""

from typing import Any

import msgspec
from litestar import Request, Response, get, params, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.blueprints.applications import service
from app.blueprints.applications.examples import (
    EXAMPLE_APPLICATION,
    EXAMPLE_LISTED,
    EXAMPLE_UNDER_WAY,
    EXAMPLE_WHOLE_APPLICATION,
)
from app.blueprints.applications.schemas import ApplicationView, ApplyToDatabase
from app.blueprints.applications.views import view
from app.blueprints.applications.waiting import await_end
from app.blueprints.examples import EXAMPLE_BLUEPRINT_UUID
from app.blueprints.large_scripts import LargeScripts, size_to_prepare
from app.contracts.applications import ApplicationStatus
from app.core.errors import DatabaseNotActive, InvalidField, TooManyUnderWay
from app.core.secrets import SecretBox
from app.operations.accepted import accepted_on
from app.operations.examples import EXAMPLE_DONE_REFERENCE, EXAMPLE_PENDING_REFERENCE
from app.operations.kinds import OperationType
from app.operations.schemas import OperationReference
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.envelope import AcceptedChange, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, path_id, path_uuid

Call = Request[Principal, Any, Any]


class ApplicationServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    plans: Plans
    box: SecretBox
    watch: RowWatch
    idempotency: Idempotency
    scripts: LargeScripts


Injected = NamedDependency[SkipValidation[ApplicationServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


_MESSAGES = {
    ApplicationStatus.COMPLETED: "Blueprint applied.",
    ApplicationStatus.ROLLED_BACK: "Dry run done; nothing was changed.",
    ApplicationStatus.FAILED: "The blueprint could not be applied.",
    ApplicationStatus.PENDING: "The blueprint will be applied.",
    ApplicationStatus.RUNNING: "The blueprint is being applied.",
}


@post(
    "/databases/{uuid:str}/blueprint_applications",
    **operation(
        "applyBlueprint",
        "Apply a blueprint to a database",
        action="blueprint.apply",
        scopes=(Scope.DATABASES_WRITE, Scope.BLUEPRINTS_READ),
        reach=Reach.DATABASE,
        answers=dict.fromkeys((200, 202), AcceptedChange[ApplicationView, OperationReference]),
        examples={
            200: AcceptedChange(
                message=_MESSAGES[ApplicationStatus.COMPLETED],
                data=EXAMPLE_APPLICATION,
                operation=EXAMPLE_DONE_REFERENCE,
            ),
            202: AcceptedChange(
                message=_MESSAGES[ApplicationStatus.PENDING],
                data=EXAMPLE_UNDER_WAY,
                operation=EXAMPLE_PENDING_REFERENCE,
            ),
        },
        errors=(DatabaseNotActive, InvalidField, TooManyUnderWay),
        body=ApplyToDatabase,
        example={"blueprint_uuid": EXAMPLE_BLUEPRINT_UUID, "variables": {"table": "notes"}, "dry_run": False},
        idempotent=True,
    ),
)
async def apply_blueprint(
    request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[ApplyToDatabase]
) -> Response[bytes]:
    async def begin() -> Accepted:
        return await service.apply(services.plans, services.box, request.user, path_uuid(uuid, "database"), data)

    async def finish(subject: str) -> Answer:
        record = await service.get_any(int(subject))
        record = await await_end(services.watch, record, data.timeout if data.wait else 0)
        ended = record.completed_at is not None
        accepted = await accepted_on(record.database, OperationType.APPLY_BLUEPRINT, application=record.id)
        answer = AcceptedChange(message=_MESSAGES[record.status], data=await view(record), operation=accepted)
        return Answer(200 if ended else 202, answer)

    size = await size_to_prepare(request.user, data.blueprint_uuid, data.variables)
    turn = services.scripts.slot(request.user.team_ids, size)
    return await services.idempotency.run(request, begin=begin, finish=finish, during_begin=turn)


@get(
    "/databases/{uuid:str}/blueprint_applications",
    **operation(
        "listBlueprintApplications",
        "List applications of blueprints to a database, newest first, without their logs",
        scopes=(Scope.DATABASES_READ, Scope.BLUEPRINTS_READ),
        reach=Reach.DATABASE,
        answers={200: Page[ApplicationView]},
        examples={200: Page(data=[EXAMPLE_LISTED], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_applications(
    request: Call, uuid: FromPath[str], limit: Limit = 25, starting_after: StartingAfterId = None
) -> Page[ApplicationView]:
    page, has_more = await service.list_of(
        request.user, path_uuid(uuid, "database"), starting_after=cursor_id(starting_after), limit=limit
    )
    return Page(data=[await view(record, with_log=False) for record in page], has_more=has_more)


@get(
    "/blueprints/{uuid:str}/blueprint_applications",
    **operation(
        "listApplicationsOfBlueprint",
        "List applications of a blueprint to your databases, newest first, without their logs",
        scopes=(Scope.BLUEPRINTS_READ,),
        reach=Reach.OWN,
        answers={200: Page[ApplicationView]},
        examples={200: Page(data=[EXAMPLE_LISTED], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_applications_of_blueprint(
    request: Call, uuid: FromPath[str], limit: Limit = 25, starting_after: StartingAfterId = None
) -> Page[ApplicationView]:
    page, has_more = await service.list_of_blueprint(
        request.user, path_uuid(uuid, "blueprint"), starting_after=cursor_id(starting_after), limit=limit
    )
    return Page(data=[await view(record, with_log=False) for record in page], has_more=has_more)


@get(
    "/blueprint_applications/{id:str}",
    **operation(
        "getBlueprintApplication",
        "Get an application of a blueprint, with its log and its SQL",
        scopes=(Scope.BLUEPRINTS_READ,),
        reach=Reach.OWN,
        answers={200: Item[ApplicationView]},
        examples={200: Item(data=EXAMPLE_WHOLE_APPLICATION)},
    ),
)
async def get_application(request: Call, id: FromPath[str]) -> Item[ApplicationView]:
    record = await service.get(request.user, path_id(id, "blueprint application"))
    return Item(data=await view(record, with_sql=True))
