"""`/api/v1/operator/…`: hosts, pools, findings of the consistency check, and databases whosever they are."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from litestar import Response, delete, get, post
from litestar.params import FromPath
from temporalio.client import Client, ScheduleOverlapPolicy
from temporalio.service import RPCError

from app.audit import sealing
from app.auth.operators import keep_operator
from app.auth.scopes import Reach, Scope
from app.contracts.upkeep import ScheduleId
from app.core.errors import DatabaseNotActive, InvalidField, ServiceUnavailable
from app.core.temporal import page_of
from app.databases.examples import EXAMPLE_DATABASE, EXAMPLE_PAUSED
from app.databases.pool.targets import pool_filling
from app.databases.schemas import DatabaseView
from app.databases.views import masked_view
from app.hosts import listing
from app.operations.accepted import accepted_on
from app.operations.examples import EXAMPLE_DONE_REFERENCE
from app.operations.kinds import OperationType
from app.operations.schemas import OperationReference
from app.operators.calls import Call, Injected, OperatorServices
from app.operators.examples import EXAMPLE_CHECK, EXAMPLE_FINDING, EXAMPLE_HOST, EXAMPLE_POOL, EXAMPLE_SEAL
from app.operators.reading import finding_views, host_view, pool_view, seal_view
from app.operators.schemas import CheckView, FindingView, HostView, PoolView, SealView
from app.outbox.workflow_starts import Accepted
from app.provisioning import operator
from app.provisioning.waiting import await_access
from app.upkeep.reconcile import findings
from app.web.envelope import AcceptedChange, Change, Page
from app.web.idempotency import Answer
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, StartingAfterName, cursor_id, path_uuid

Listed = TypeVar("Listed")
_RPC_TIMEOUT = timedelta(seconds=3)
_STARTED = "The check runs, or ran already: what it finds is listed when it has ended."
_PAUSED, _RESUMED = "Database paused.", "Database resumed."


@get(
    "/operator/hosts",
    **operation(
        "listHosts",
        "List engine hosts with their load and room, in the order of their ids",
        scopes=(Scope.OPERATOR_READ,),
        reach=Reach.OPERATOR,
        answers={200: Page[HostView]},
        examples={200: Page(data=[EXAMPLE_HOST], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_hosts(request: Call, limit: Limit = 25, starting_after: StartingAfterId = None) -> Page[HostView]:
    after = cursor_id(starting_after)
    views = [host_view(host) for host in await listing.list_hosts()]
    return _page(views, [str(one.id) for one in views], None if after is None else str(after), limit)


@get(
    "/operator/pools",
    **operation(
        "listPools",
        "List warm pools, and what fills them; an item's identifier is `region/db_type`",
        scopes=(Scope.OPERATOR_READ,),
        reach=Reach.OPERATOR,
        answers={200: Page[PoolView]},
        examples={200: Page(data=[EXAMPLE_POOL], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_pools(
    request: Call, services: Injected, limit: Limit = 25, starting_after: StartingAfterName = None
) -> Page[PoolView]:
    views = [pool_view(pool) for pool in await pool_filling(services.settings.pool_size)]
    return _page(views, [f"{one.region}/{one.db_type.value}" for one in views], starting_after, limit)


@get(
    "/operator/findings",
    **operation(
        "listFindings",
        "List what scheduled consistency checks have found and is not over, newest first",
        scopes=(Scope.OPERATOR_READ,),
        reach=Reach.OPERATOR,
        answers={200: Page[FindingView]},
        examples={200: Page(data=[EXAMPLE_FINDING], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_findings(request: Call, limit: Limit = 25, starting_after: StartingAfterId = None) -> Page[FindingView]:
    # One that is over by now has no row, and its place is known all the same.
    page = await findings.list_stored(after=cursor_id(starting_after), limit=limit + 1)
    return Page(data=await finding_views(page[:limit]), has_more=len(page) > limit)


@get(
    "/operator/audit_seals",
    **operation(
        "listAuditSeals",
        "List the seals of the audit log, newest first",
        scopes=(Scope.OPERATOR_READ,),
        reach=Reach.OPERATOR,
        answers={200: Page[SealView]},
        examples={200: Page(data=[EXAMPLE_SEAL], has_more=False)},
        errors=(InvalidField,),
    ),
)
async def list_audit_seals(request: Call, limit: Limit = 25, starting_after: StartingAfterId = None) -> Page[SealView]:
    page = await sealing.list_seals(after=cursor_id(starting_after), limit=limit + 1)
    return Page(data=[seal_view(seal) for seal in page[:limit]], has_more=len(page) > limit)


@post(
    "/operator/checks",
    **operation(
        "runCheck",
        "Run the scheduled consistency check now; it mends what it can",
        action="check.run",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={202: Change[CheckView]},
        examples={202: Change(message=_STARTED, data=EXAMPLE_CHECK)},
        idempotent=True,
    ),
)
async def run_consistency_check(request: Call, services: Injected) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        return Accepted(subject=ScheduleId.RECONCILE.value)

    async def finish(subject: str) -> Answer:
        await _run_check(services.client)
        url = page_of(services.settings, "schedules", subject)
        return Answer(202, Change(message=_STARTED, data=CheckView(schedule_id=subject, temporal_url=url)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@post(
    "/operator/databases/{uuid:str}/pauses",
    **operation(
        "pauseAnyDatabase",
        "Pause a database of any team, until an operator resumes it",
        action="database.operator_pause",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: AcceptedChange[DatabaseView, OperationReference]},
        examples={200: AcceptedChange(message=_PAUSED, data=EXAMPLE_PAUSED, operation=EXAMPLE_DONE_REFERENCE)},
        errors=(DatabaseNotActive,),
        idempotent=True,
    ),
)
async def pause_any_database(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        paused = await operator.pause(services.plans, path_uuid(uuid, "database"))
        return Accepted(subject=str(paused.uuid))

    async def finish(subject: str) -> Answer:
        return await _applied(services, subject, OperationType.PAUSE, _PAUSED)

    return await services.idempotency.run(request, begin=begin, finish=finish)


@delete(
    "/operator/databases/{uuid:str}/pauses",
    **operation(
        "resumeAnyDatabase",
        "Resume a database of any team, whatever it was paused for",
        action="database.operator_resume",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: AcceptedChange[DatabaseView, OperationReference]},
        examples={200: AcceptedChange(message=_RESUMED, data=EXAMPLE_DATABASE, operation=EXAMPLE_DONE_REFERENCE)},
        errors=(DatabaseNotActive,),
        idempotent=True,
    ),
)
async def resume_any_database(request: Call, services: Injected, uuid: FromPath[str]) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        resumed = await operator.resume(path_uuid(uuid, "database"))
        return Accepted(subject=str(resumed.uuid))

    async def finish(subject: str) -> Answer:
        return await _applied(services, subject, OperationType.RESUME, _RESUMED)

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def _applied(services: OperatorServices, subject: str, type: OperationType, message: str) -> Answer:
    timeout = services.settings.revocation_timeout_seconds
    applied, record = await await_access(services.watch, UUID(subject), timeout)
    said = message if applied else f"{message} The engine follows in a moment."
    change: AcceptedChange[DatabaseView, OperationReference] = AcceptedChange(
        message=said, data=masked_view(services.plans, record), operation=await accepted_on(record.uuid, type)
    )
    return Answer(200, change)


def _page(items: Sequence[Listed], ids: Sequence[str], after: str | None, limit: int) -> Page[Listed]:
    """Of a list that is short. Raises `InvalidField` for a cursor that is none of the ids."""
    if after is not None and after not in ids:
        raise InvalidField("starting_after", "This is not the identifier of an item.")
    first = 0 if after is None else ids.index(after) + 1
    return Page(data=list(items[first : first + limit]), has_more=len(items) > first + limit)


async def _run_check(client: Client) -> None:
    """Has a worker make the scheduled check now, unless one is under way. Raises `ServiceUnavailable` when Temporal
    can't be reached, or doesn't have the Schedule yet."""
    try:
        schedule = client.get_schedule_handle(ScheduleId.RECONCILE.value)
        await schedule.trigger(overlap=ScheduleOverlapPolicy.SKIP, rpc_timeout=_RPC_TIMEOUT)
    except (RPCError, RuntimeError, OSError):
        raise ServiceUnavailable("Temporal can't be reached just now, so no check was started.") from None
