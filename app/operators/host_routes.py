"""`/api/v1/operator/hosts`: registering, draining, emptying and removing engine hosts, as `headwater hosts` does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Response, delete, params, post
from litestar.params import FromPath

from app.audit.drafts import note
from app.auth.operators import keep_operator
from app.auth.scopes import Reach, Scope
from app.backups.restores.evacuation import evacuate
from app.core.errors import InvalidField
from app.hosts import changes, listing, registration
from app.operators.calls import Call, Injected
from app.operators.examples import EXAMPLE_ADDED_HOST, EXAMPLE_DRAINING_HOST, EXAMPLE_EVACUATION, EXAMPLE_HOST
from app.operators.lost_hosts import give_up
from app.operators.new_hosts import described
from app.operators.reading import evacuation_view, host_view
from app.operators.schemas import AddedHost, AddHost, EvacuateHost, EvacuationView, HostView, RemovedEngineHost
from app.outbox.workflow_starts import Accepted
from app.upkeep.reconcile import findings
from app.web.envelope import Change
from app.web.idempotency import Answer
from app.web.operation import operation
from app.web.parameters import path_id

_WHAT = "engine host"
_ADDED, _REMOVED = "Host registered.", "Host removed."
_DRAINED, _UNDRAINED = "The host takes no new databases.", "The host takes new databases again."
_EVACUATED = "What is listed as moving comes back on other hosts; ask again to see how far it is."


@post(
    "/operator/hosts",
    **operation(
        "addHost",
        "Check, harden and register an engine host, or bring a registered one up to date",
        action="host.add",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={201: Change[AddedHost]},
        examples={201: Change(message=_ADDED, data=EXAMPLE_ADDED_HOST)},
        body=AddHost,
        example={
            "db_type": "postgres",
            "region": "us-east-1",
            "admin_host": "db1.example.com",
            "admin_user": "headwater",
            "admin_password": "the administrator's",
            "tls": "verify-full",
        },
        errors=(InvalidField,),
        idempotent=True,
    ),
)
async def add_host(request: Call, services: Injected, data: params.JSONBody[AddHost]) -> Response[bytes]:
    examined: list[registration.ExaminedHost] = []

    @asynccontextmanager
    async def examining() -> AsyncIterator[None]:
        # It takes seconds, and what it changes on the server may be repeated: no transaction waits for it.
        new = await described(data)
        examined.append(await registration.examine(new, services.settings.postgres_extensions, field="admin_host"))
        yield

    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        added = await registration.register(services.box, examined[0])
        return Accepted(subject=str(added.host_id), settled=True)

    async def finish(subject: str) -> Answer:
        shortcomings = list(examined[0].shortcomings)
        return Answer(201, Change(message=_ADDED, data=AddedHost.of(await _view(subject), shortcomings)))

    return await services.idempotency.run(request, begin=begin, finish=finish, during_begin=examining())


@post(
    "/operator/hosts/{id:str}/drains",
    **operation(
        "drainHost",
        "Place no new databases on a host; those that are there stay",
        action="host.drain",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: Change[HostView]},
        examples={200: Change(message=_DRAINED, data=EXAMPLE_DRAINING_HOST)},
        idempotent=True,
    ),
)
async def drain_host(request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
    return await _set_draining(request, services, id, draining=True)


@delete(
    "/operator/hosts/{id:str}/drains",
    **operation(
        "undrainHost",
        "Place new databases on a host again",
        action="host.undrain",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: Change[HostView]},
        examples={200: Change(message=_UNDRAINED, data=EXAMPLE_HOST)},
        idempotent=True,
    ),
)
async def undrain_host(request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
    return await _set_draining(request, services, id, draining=False)


@post(
    "/operator/hosts/{id:str}/evacuations",
    **operation(
        "evacuateHost",
        "Make the databases of a lost host again on others, from their newest backups",
        action="host.evacuate",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: Change[EvacuationView]},
        examples={200: Change(message=_EVACUATED, data=EXAMPLE_EVACUATION)},
        body=EvacuateHost,
        example={"discard": False},
        idempotent=True,
    ),
)
async def evacuate_host(
    request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[EvacuateHost]
) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        host = path_id(id, _WHAT)
        await changes.drain_host(host)
        note(changes={"discard": (None, data.discard)})
        return Accepted(subject=str(host))

    async def finish(subject: str) -> Answer:
        # Each database in a transaction of its own. Whoever comes again after a crash goes on with the rest.
        if data.discard:
            await give_up(services.plans, int(subject))
        return Answer(200, Change(message=_EVACUATED, data=evacuation_view(int(subject), await evacuate(int(subject)))))

    return await services.idempotency.run(request, begin=begin, finish=finish)


@delete(
    "/operator/hosts/{id:str}",
    **operation(
        "removeHost",
        "Remove a host that has no databases any more, and its administrator's credentials",
        action="host.remove",
        scopes=(Scope.OPERATOR_WRITE,),
        reach=Reach.OPERATOR,
        answers={200: Change[RemovedEngineHost]},
        examples={200: Change(message=_REMOVED, data=RemovedEngineHost(id=1))},
        errors=(InvalidField,),
        idempotent=True,
    ),
)
async def remove_host(request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        host = path_id(id, _WHAT)
        await changes.remove_host(host)
        await findings.forget_host(host)
        return Accepted(subject=str(host), settled=True)

    async def finish(subject: str) -> Answer:
        return Answer(200, Change(message=_REMOVED, data=RemovedEngineHost(id=int(subject))))

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def _set_draining(request: Call, services: Injected, id: str, *, draining: bool) -> Response[bytes]:
    async def begin() -> Accepted:
        await keep_operator(request.user.user_id)
        host = path_id(id, _WHAT)
        await (changes.drain_host(host) if draining else changes.undrain_host(host))
        return Accepted(subject=str(host), settled=True)

    async def finish(subject: str) -> Answer:
        return Answer(200, Change(message=_DRAINED if draining else _UNDRAINED, data=await _view(subject)))

    return await services.idempotency.run(request, begin=begin, finish=finish)


async def _view(subject: str) -> HostView:
    """In the transaction of the change, so that it is there."""
    return next(host_view(host) for host in await listing.list_hosts() if host.id == int(subject))
