"""`/api/v1/operator/operations`: the changes of all teams' databases that take time."""

from typing import Annotated

from litestar import Controller, Response, get, post
from litestar.params import FromPath, QueryParameter

from app.auth.operators import keep_operator
from app.auth.scopes import Reach, Scope
from app.core.errors import (
    CapacityExhausted,
    InvalidField,
    OperationEnded,
    OperationNotCancellable,
    PlanLimitExceeded,
    RestorationInProgress,
    require_found,
)
from app.operations import inventory
from app.operations.inventory import OperatorFilters, OperatorRecord
from app.operations.kinds import OperationStatus, OperationType
from app.operators.calls import Call, Injected
from app.operators.examples import EXAMPLE_CANCELLED_OF_ANYBODY, EXAMPLE_CANCELLING_OF_ANYBODY, EXAMPLE_OF_ANYBODY
from app.operators.reading import operation_view
from app.operators.schemas import OperatorOperationView
from app.outbox.workflow_starts import Accepted
from app.provisioning import operation_service
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.operation_parameters import (
    OperatedFilter,
    OperationStatusFilter,
    OperationTypeFilter,
    known_choice,
    known_uuid,
)
from app.web.envelope import Change, Item, Page
from app.web.idempotency import Answer
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfter, cursor_uuid, parse_uuid, path_uuid

_WHAT = "operation"
_CANCELLED, _RETRIED = "Operation cancelled.", "The next attempt is made now."
_CANCELLING = "The operation was asked to stop, and finds out how far it came."

_LONGEST_NAME = 255
TeamFilter = Annotated[
    str | None,
    QueryParameter(
        name="team",
        description="Only those of the team with this id or full name.",
        schema_extra={"maxLength": _LONGEST_NAME, "pattern": "^[^\\u0000]*$"},
    ),
]
OpenFilter = Annotated[bool, QueryParameter(name="open", description="Only operations that have not ended.")]
OverdueFilter = Annotated[
    bool, QueryParameter(name="overdue", description="Only operations that are open after their deadline.")
]


class OperatorOperationController(Controller):
    path = "/operator/operations"

    @get(
        "",
        **operation(
            "listAllOperations",
            "List the operations of all teams, newest first",
            scopes=(Scope.OPERATOR_READ,),
            reach=Reach.OPERATOR,
            answers={200: Page[OperatorOperationView]},
            examples={200: Page(data=[EXAMPLE_OF_ANYBODY], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_operations(
        self,
        request: Call,
        services: Injected,
        team: TeamFilter = None,
        database_uuid: OperatedFilter = None,
        status: OperationStatusFilter = None,
        type: OperationTypeFilter = None,
        only_open: OpenFilter = False,
        overdue: OverdueFilter = False,
        limit: Limit = 25,
        starting_after: StartingAfter = None,
    ) -> Page[OperatorOperationView]:
        if team is not None and (len(team) > _LONGEST_NAME or "\0" in team):
            raise InvalidField("team", f"Expected an id, or a name of at most {_LONGEST_NAME} characters.")
        filters = OperatorFilters(
            team=team,
            database=known_uuid("database_uuid", database_uuid),
            status=known_choice("status", status, OperationStatus),
            type=known_choice("type", type, OperationType),
            open=only_open,
            overdue=overdue,
        )
        after = cursor_uuid(starting_after)
        page = await inventory.list_page(filters, after=after, limit=limit + 1)
        if not page and after is not None and await inventory.find(after) is None:
            raise InvalidField("starting_after", "This is not the uuid of an operation.")
        views = [operation_view(services.settings, record) for record in page[:limit]]
        return Page(data=views, has_more=len(page) > limit)

    @get(
        "/{uuid:str}",
        **operation(
            "getAnyOperation",
            "Get an operation of any team",
            scopes=(Scope.OPERATOR_READ,),
            reach=Reach.OPERATOR,
            answers={200: Item[OperatorOperationView]},
            examples={200: Item(data=EXAMPLE_OF_ANYBODY)},
        ),
    )
    async def get_operation(
        self, request: Call, services: Injected, uuid: FromPath[str]
    ) -> Item[OperatorOperationView]:
        return Item(data=operation_view(services.settings, await _found(uuid)))

    @post(
        "/{uuid:str}/cancellations",
        **operation(
            "cancelAnyOperation",
            "Cancel an operation of any team, also one that no client asked for",
            action="operation.operator_cancel",
            scopes=(Scope.OPERATOR_WRITE,),
            reach=Reach.OPERATOR,
            answers=dict.fromkeys((200, 202), Change[OperatorOperationView]),
            examples={
                200: Change(message=_CANCELLED, data=EXAMPLE_CANCELLED_OF_ANYBODY),
                202: Change(message=_CANCELLING, data=EXAMPLE_CANCELLING_OF_ANYBODY),
            },
            errors=(OperationNotCancellable, PlanLimitExceeded, CapacityExhausted, RestorationInProgress),
            idempotent=True,
        ),
    )
    async def cancel_operation(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            await keep_operator(request.user.user_id)
            return await operation_service.cancel_any(services.plans, CANCELLATIONS, path_uuid(uuid, _WHAT))

        async def finish(subject: str) -> Answer:
            record = await _found(subject)
            status, message = (200, _CANCELLED) if record.ended else (202, _CANCELLING)
            return Answer(status, Change(message=message, data=operation_view(services.settings, record)))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @post(
        "/{uuid:str}/retries",
        **operation(
            "retryAnyOperation",
            "Have an operation of any team that waits make its next attempt now",
            action="operation.operator_retry",
            scopes=(Scope.OPERATOR_WRITE,),
            reach=Reach.OPERATOR,
            answers={202: Change[OperatorOperationView]},
            examples={202: Change(message=_RETRIED, data=EXAMPLE_OF_ANYBODY)},
            errors=(OperationEnded,),
            idempotent=True,
        ),
    )
    async def retry_operation(self, request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            await keep_operator(request.user.user_id)
            return await operation_service.retry_any(path_uuid(uuid, _WHAT))

        async def finish(subject: str) -> Answer:
            return Answer(202, Change(message=_RETRIED, data=operation_view(services.settings, await _found(subject))))

        return await services.idempotency.run(request, begin=begin, finish=finish)


async def _found(text: str) -> OperatorRecord:
    """Raises `NotFound`."""
    uuid = parse_uuid(text)
    return require_found(None if uuid is None else await inventory.find(uuid), _WHAT)
