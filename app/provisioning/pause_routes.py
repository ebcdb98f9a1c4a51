"""`/api/v1/databases/{uuid}/pauses`: what a team closes and opens again itself."""

from uuid import UUID

from litestar import Controller, Response, delete, post
from litestar.params import FromPath

from app.auth.scopes import Reach, Scope
from app.core.errors import DatabaseNotActive, PausedOtherwise, TooManyUnderWay
from app.databases.examples import EXAMPLE_DATABASE, EXAMPLE_PAUSED
from app.databases.schemas import DatabaseView
from app.databases.views import masked_view
from app.operations.accepted import accepted_on
from app.operations.examples import EXAMPLE_DONE_REFERENCE
from app.operations.kinds import OperationType
from app.operations.schemas import OperationReference
from app.outbox.workflow_starts import Accepted
from app.provisioning import pauses
from app.provisioning.route_services import Call, Injected
from app.provisioning.waiting import await_access
from app.web.envelope import AcceptedChange
from app.web.idempotency import Answer
from app.web.operation import operation
from app.web.parameters import path_uuid


class PauseController(Controller):
    path = "/databases/{uuid:str}/pauses"

    @post(
        "",
        **operation(
            "pauseDatabase",
            "Pause a database: its connections end, its data and its credentials stay",
            action="database.pause",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.DATABASE,
            answers={200: AcceptedChange[DatabaseView, OperationReference]},
            examples={
                200: AcceptedChange(message="Database paused.", data=EXAMPLE_PAUSED, operation=EXAMPLE_DONE_REFERENCE)
            },
            errors=(PausedOtherwise, DatabaseNotActive, TooManyUnderWay),
            idempotent=True,
        ),
    )
    async def pause_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            return await pauses.pause(services.plans, request.user, path_uuid(uuid, "database"))

        async def finish(subject: str) -> Answer:
            timeout = services.settings.revocation_timeout_seconds
            closed, record = await await_access(services.watch, UUID(subject), timeout)
            message = "Database paused." if closed else "Database paused; its connections end in a moment."
            accepted = await accepted_on(record.uuid, OperationType.PAUSE)
            return Answer(
                200, AcceptedChange(message=message, data=masked_view(services.plans, record), operation=accepted)
            )

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @delete(
        "",
        **operation(
            "resumeDatabase",
            "Resume a database that its team has paused",
            action="database.resume",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.DATABASE,
            answers={200: AcceptedChange[DatabaseView, OperationReference]},
            examples={
                200: AcceptedChange(
                    message="Database resumed.", data=EXAMPLE_DATABASE, operation=EXAMPLE_DONE_REFERENCE
                )
            },
            errors=(PausedOtherwise, DatabaseNotActive, TooManyUnderWay),
            idempotent=True,
        ),
    )
    async def resume_database(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            return await pauses.resume(request.user, path_uuid(uuid, "database"))

        async def finish(subject: str) -> Answer:
            timeout = services.settings.revocation_timeout_seconds
            open_again, record = await await_access(services.watch, UUID(subject), timeout)
            message = "Database resumed." if open_again else "Database resumed; its access follows in a moment."
            accepted = await accepted_on(record.uuid, OperationType.RESUME)
            return Answer(
                200, AcceptedChange(message=message, data=masked_view(services.plans, record), operation=accepted)
            )

        return await services.idempotency.run(request, begin=begin, finish=finish)
