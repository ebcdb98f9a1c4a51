"""`/api/v1/operations`: changes that take time, from the request to their end."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation
from msgspec import UNSET

from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.auth.standing import Standing, expect
from app.core.errors import (
    CapacityExhausted,
    InvalidField,
    OperationEnded,
    OperationNotCancellable,
    PlanLimitExceeded,
    RestorationInProgress,
    TooManyStreams,
    require_found,
)
from app.operations import listing, records
from app.operations.accepted import accepted_on
from app.operations.examples import (
    EXAMPLE_CANCELLED,
    EXAMPLE_CANCELLING,
    EXAMPLE_OPERATION,
    EXAMPLE_PENDING_REFERENCE,
)
from app.operations.kinds import OperationStatus, OperationType
from app.operations.listing import OperationFilters
from app.operations.records import OperationRecord
from app.operations.schemas import OperationReference, OperationView
from app.operations.views import view
from app.outbox.workflow_starts import Accepted
from app.provisioning import operation_service
from app.provisioning.cancelling import UNDONE_BY
from app.provisioning.operation_parameters import (
    OperatedFilter,
    OperationStatusFilter,
    OperationTypeFilter,
    known_choice,
    known_uuid,
)
from app.provisioning.operation_service import Cancellations
from app.quotas.plans import Plans
from app.store.notify import RowWatch
from app.web.envelope import AcceptedChange, Change, Item, Page
from app.web.event_streams import EventStreams, Frame
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, Timeout, Wait, cursor_uuid, path_uuid

Call = Request[Principal, Any, Any]

_WHAT = "operation"
_CANCELLED = "Operation cancelled."
_CANCELLING = "The operation was asked to stop, and finds out how far it came."
_RETRIED = "The next attempt is made now."


class OperationServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    plans: Plans
    cancellations: Cancellations
    watch: RowWatch
    streams: EventStreams
    idempotency: Idempotency


Injected = NamedDependency[SkipValidation[OperationServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


class OperationController(Controller):
    path = "/operations"

    @get(
        "",
        **operation(
            "listOperations",
            "List operations, newest first",
            scopes=(Scope.DATABASES_READ,),
            reach=Reach.OWN,
            answers={200: Page[OperationView]},
            examples={200: Page(data=[EXAMPLE_OPERATION], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_operations(
        self,
        request: Call,
        database_uuid: OperatedFilter = None,
        status: OperationStatusFilter = None,
        type: OperationTypeFilter = None,
        limit: Limit = 25,
        starting_after: StartingAfter = None,
    ) -> Page[OperationView]:
        filters = OperationFilters(
            database=known_uuid("database_uuid", database_uuid),
            status=known_choice("status", status, OperationStatus),
            type=known_choice("type", type, OperationType),
        )
        if filters.database is None and request.user.databases is not None:
            raise InvalidField("database_uuid", "This API key is for some databases only: name one of them.")
        if filters.database is not None and not request.user.reaches(filters.database):
            return Page(data=[], has_more=False)
        after, teams = cursor_uuid(starting_after), request.user.team_ids
        page = await listing.list_owned(teams, filters, after=after, limit=limit + 1)
        if not page and after is not None and await listing.team_of(after, teams) is None:
            raise InvalidField("starting_after", "This is not the uuid of an operation of yours.")
        return Page(data=[view(record) for record in page[:limit]], has_more=len(page) > limit)

    @get(
        "/{uuid:str}",
        **operation(
            "getOperation",
            "Get an operation, at its end if asked to wait",
            scopes=(Scope.DATABASES_READ,),
            reach=Reach.OWN,
            answers={200: Item[OperationView]},
            examples={200: Item(data=EXAMPLE_OPERATION)},
        ),
    )
    async def get_operation(
        self, request: Call, services: Injected, uuid: FromPath[str], wait: Wait = False, timeout: Timeout = 30
    ) -> Item[OperationView]:
        record = await _owned(request, uuid)

        async def look() -> OperationRecord | None:
            seen = await records.find(record.uuid)
            return seen if seen is not None and seen.ended else None

        if wait and not record.ended:
            ended = await services.watch.wait_for(record.database, look, timeout)
            record = ended or await _owned(request, uuid)
            await expect(request.user, record.team_id)
        return Item(data=view(record))

    @get(
        "/{uuid:str}/events",
        **operation(
            "streamOperation",
            "Follow an operation: an event at each change, until it ends",
            scopes=(Scope.DATABASES_READ,),
            reach=Reach.OWN,
            answers={200: OperationView, 204: None},
            examples={200: EXAMPLE_OPERATION},
            errors=(TooManyStreams,),
            events="operation",
        ),
    )
    async def stream_operation(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[Any]:
        record = await _owned(request, uuid)

        async def look() -> Frame | None:
            seen = await records.find(record.uuid)
            return None if seen is None else _frame(seen)

        return services.streams.answer(
            request,
            Standing(
                request.user.key_id,
                record.team_id,
                record.database,
                request.user.session_id,
                request.user.key_hash,
                request.user.address,
            ),
            lambda: services.watch.changes(record.database),
            look,
            now=_frame(record),
            scope=Scope.DATABASES_READ,
        )

    @post(
        "/{uuid:str}/cancellations",
        **operation(
            "cancelOperation",
            "Cancel an operation: what it has changed so far is undone",
            action="operation.cancel",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.OWN,
            answers=dict.fromkeys((200, 202), AcceptedChange[OperationView, OperationReference]),
            examples={
                200: AcceptedChange(message=_CANCELLED, data=EXAMPLE_CANCELLED, operation=EXAMPLE_PENDING_REFERENCE),
                202: AcceptedChange(message=_CANCELLING, data=EXAMPLE_CANCELLING),
            },
            errors=(OperationNotCancellable, PlanLimitExceeded, CapacityExhausted, RestorationInProgress),
            idempotent=True,
        ),
    )
    async def cancel_operation(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            operation = path_uuid(uuid, _WHAT)
            return await operation_service.cancel(services.plans, services.cancellations, request.user, operation)

        async def finish(subject: str) -> Answer:
            record = await _any(subject)
            if not record.ended:
                return Answer(202, AcceptedChange(message=_CANCELLING, data=view(record)))
            follows = UNDONE_BY.get(record.type)
            undoing = UNSET if follows is None else await accepted_on(record.database, follows)
            return Answer(200, AcceptedChange(message=_CANCELLED, data=view(record), operation=undoing))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @post(
        "/{uuid:str}/retries",
        **operation(
            "retryOperation",
            "Have an operation that waits make its next attempt now",
            action="operation.retry",
            scopes=(Scope.DATABASES_WRITE,),
            reach=Reach.OWN,
            answers={202: Change[OperationView]},
            examples={202: Change(message=_RETRIED, data=EXAMPLE_OPERATION)},
            errors=(OperationEnded,),
            idempotent=True,
        ),
    )
    async def retry_operation(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            return await operation_service.retry(request.user, path_uuid(uuid, _WHAT))

        async def finish(subject: str) -> Answer:
            return Answer(202, Change(message=_RETRIED, data=view(await _any(subject))))

        return await services.idempotency.run(request, begin=begin, finish=finish)


async def _owned(request: Call, uuid: str) -> OperationRecord:
    return await operation_service.find_owned(request.user, path_uuid(uuid, _WHAT))


async def _any(uuid: str) -> OperationRecord:
    """Raises `NotFound` for one that was swept since."""
    return require_found(await records.find(UUID(uuid)), _WHAT)


def _frame(record: OperationRecord) -> Frame:
    return Frame(version=record.version, event="operation", data=msgspec.json.encode(view(record)), last=record.ended)
