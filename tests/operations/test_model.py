"""Whatever happens in the middle of whichever step of whichever kind: every operation ends, or says why it waits and
can be cancelled; nothing is left behind; and operations and the state of their databases agree.

The cases are generated from the declared kinds: a new kind fails here until it is said how one begins.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.blueprints.applications import service as applications
from app.blueprints.applications.schemas import ApplyToDatabase
from app.blueprints.large_scripts import LargeScripts
from app.contracts.engine import STORE_UNAVAILABLE
from app.core.errors import NotFound, OperationEnded, OperationNotCancellable
from app.credentials import service as credentials
from app.credentials.schemas import RotateCredentials
from app.databases.pool.claim import ReadyMembers
from app.databases.schemas import ChangeQuotas, CreateDatabase
from app.local.temporal import TemporalService
from app.operations.kinds import KINDS, OperationType
from app.operations.records import OperationRecord, find, find_latest, open_on
from app.provisioning import operation_service, operator, service
from app.provisioning.cancelling import CANCELLATIONS
from app.provisioning.creation import DatabaseCreation
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.notify import RowWatch
from app.store.session import transaction
from tests.operations.world import Gate, World, world
from tests.servers import RunningServer
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.principals import principal_of
from tests.support.store import execute_at
from tests.support.temporal_server import running_temporal
from tests.support.waiting import until

GRACE = timedelta(seconds=2)
LONG_GRACE = timedelta(hours=1)
LEAD_IN = {"replace_host": "create_database"}
"""Activities that a step comes to only when another one fails because of its host."""
UNREPORTED: dict[str, tuple[str | None, ...]] = {"keep_data": ("look_at_grace",)}
"""Activities by the steps that they belong to and don't report."""


class Fault(Enum):
    KILLED = "worker killed"
    ANSWER_LOST = "worker killed after the step"
    HOST_AWAY = "host away"
    TEMPORAL_AWAY = "Temporal away"
    STORE_AWAY = "our database away"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    DELETED = "deleted meanwhile"


@dataclass
class Case:
    """One operation that is to be in the middle of one activity of one of its steps."""

    type: OperationType
    step: str
    activity: str | None
    database: UUID | None = None
    operation: UUID | None = None
    gates: list[Gate] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.type} in {self.step}/{self.activity}"

    async def now(self) -> OperationRecord:
        assert self.operation is not None
        found = await find(self.operation)
        assert found is not None
        return found


def cases() -> list[Case]:
    return [
        Case(type, step.name, activity)
        for type, kind in KINDS.items()
        if type in BEGIN
        for step in kind.steps
        for activity in (step.activities or UNREPORTED.get(step.name, (None,)))
        # Taken only after a cancellation, which is a fault of its own here.
        if activity != "abandon_application"
    ]


@dataclass
class Reached:
    """True when nobody is on the way any more; shows who is."""

    missing: list[str]

    def __bool__(self) -> bool:
        return not self.missing


@dataclass
class Stage:
    world: World
    caller: Caller
    blueprint: str

    async def active(self) -> UUID:
        answer = data_of(await self.caller.create("model", region=self.world.region, db_type=self.world.kind), 202)
        database = UUID(answer["uuid"])
        await self._ended(database, OperationType.CREATE)
        return database

    async def prepared(self, type: OperationType) -> UUID | None:
        """A database in the state from which an operation of that type begins."""
        if type is OperationType.CREATE:
            return None
        database = await self.active()
        if type is OperationType.UNDELETE:
            async with transaction():
                await service.delete_any(DEFAULT_PLANS, database, LONG_GRACE)
            await self.world.hurry()
            await until(
                lambda: self.world.rows("SELECT 1 FROM databases WHERE uuid = $1 AND revoked_at IS NOT NULL", database)
            )
        if type is OperationType.RESUME:
            await operator.pause(DEFAULT_PLANS, database)
            await self._ended(database, OperationType.PAUSE)
        return database

    async def begin(self, case: Case, fault: Fault) -> None:
        """With the gate of its step closed before its workflow can begin."""
        async with transaction():
            await BEGIN[case.type](self, case)
            assert case.database is not None
            record = await find_latest(case.database, case.type)
            assert record is not None
            assert record.workflow_id is not None
            case.operation = record.uuid
            if case.activity is None:
                # It waits for the one before it, which is held.
                first, _ = await open_on(record.database_id, (case.type,))
                assert first.workflow_id is not None
                held_at = next(step.activities[0] for step in KINDS[case.type].steps if step.activities)
                case.gates.append(self.world.gates.close(first.workflow_id, held_at, after=False))
            else:
                lead_in = LEAD_IN.get(case.activity)
                if lead_in is not None:
                    self.world.gates.failing.add((record.workflow_id, lead_in))
                after = fault is Fault.ANSWER_LOST
                case.gates.append(self.world.gates.close(record.workflow_id, case.activity, after=after))

    async def _ended(self, database: UUID, type: OperationType) -> None:
        async def look() -> bool:
            record = await find_latest(database, type)
            return record is not None and record.ended

        await self.world.hurry()
        await until(look)


async def _create(stage: Stage, case: Case) -> None:
    creation = DatabaseCreation(
        principal_of(stage.caller),
        CreateDatabase(name="model", region=stage.world.region, db_type=stage.world.kind),
        plans=DEFAULT_PLANS,
        box=stage.world.box,
        members=ReadyMembers(),
        watch=RowWatch(stage.world.direct_dsn),
        scripts=LargeScripts(),
    )
    case.database = UUID((await creation.begin()).subject)


async def _delete(_: Stage, case: Case) -> None:
    assert case.database is not None
    await service.delete_any(DEFAULT_PLANS, case.database, GRACE)


async def _undelete(_: Stage, case: Case) -> None:
    assert case.database is not None
    await undelete(DEFAULT_PLANS, case.database)


async def _limits(stage: Stage, case: Case) -> None:
    assert case.database is not None
    change = ChangeQuotas(connection_hard_limit=3)
    await service.change_quotas(DEFAULT_PLANS, principal_of(stage.caller), case.database, change)


async def _pause(_: Stage, case: Case) -> None:
    assert case.database is not None
    await operator.pause(DEFAULT_PLANS, case.database)


async def _resume(_: Stage, case: Case) -> None:
    assert case.database is not None
    await operator.resume(case.database)


async def _rotate(stage: Stage, case: Case) -> None:
    assert case.database is not None
    await credentials.rotate_any(stage.world.box, case.database, RotateCredentials())


async def _apply(stage: Stage, case: Case) -> None:
    assert case.database is not None
    # For the step `queue`, behind another one.
    for _ in range(1 if case.activity else 2):
        request = ApplyToDatabase(blueprint_uuid=UUID(stage.blueprint))
        principal = principal_of(stage.caller)
        await applications.apply(DEFAULT_PLANS, stage.world.box, principal, case.database, request)


BEGIN: dict[OperationType, Callable[[Stage, Case], Awaitable[None]]] = {
    OperationType.CREATE: _create,
    OperationType.DELETE: _delete,
    OperationType.UNDELETE: _undelete,
    OperationType.LIMITS: _limits,
    OperationType.PAUSE: _pause,
    OperationType.RESUME: _resume,
    OperationType.ROTATE: _rotate,
    OperationType.APPLY_BLUEPRINT: _apply,
}


ELSEWHERE = {OperationType.BACKUP, OperationType.RESTORE, OperationType.CLONE}
"""They need a store of backups, with which `tests/backups` holds them to the same."""


def test_every_kind_is_covered() -> None:
    assert set(KINDS) - ELSEWHERE == set(BEGIN), "say how one begins"


@pytest_asyncio.fixture(scope="module")
async def own_temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalService]:
    """No other worker takes the tasks of this one."""
    async with running_temporal(tmp_path_factory.mktemp("operations")) as server:
        yield server


@pytest_asyncio.fixture
async def own_numbers(control_admin_dsn: str) -> None:
    """Workflows are named after applications, and Temporal knows those of the tests before."""
    await execute_at(control_admin_dsn, f"SELECT setval('blueprint_applications_id_seq', {uuid4().int % 2**40})")


@pytest_asyncio.fixture
async def stage(
    control_dsn: str, own_numbers: None, own_temporal: TemporalService, postgres_server: RunningServer
) -> AsyncIterator[Stage]:
    async with _stage(control_dsn, own_temporal, postgres_server) as made:
        yield made


@pytest_asyncio.fixture
async def mysql_stage(
    control_dsn: str, own_numbers: None, own_temporal: TemporalService, mysql_server: RunningServer
) -> AsyncIterator[Stage]:
    async with _stage(control_dsn, own_temporal, mysql_server) as made:
        yield made


@asynccontextmanager
async def _stage(control_dsn: str, temporal: TemporalService, engine: RunningServer) -> AsyncIterator[Stage]:
    async with world(control_dsn, temporal.address, engine) as (made, caller):
        sql = "CREATE TABLE IF NOT EXISTS one (id integer);\nCREATE TABLE IF NOT EXISTS two (id integer);"
        blueprint = data_of(await caller.post("/blueprints", {"name": "model", "sql_content": sql}), 201)
        yield Stage(made, caller, blueprint["uuid"])


# What Temporal gave up on while a gate was closed is told to a step that has gone.
astray = pytest.mark.filterwarnings("ignore:Cannot find activity to cancel")


@astray
@pytest.mark.parametrize("fault", Fault)
async def test_every_operation_ends_or_says_why_it_waits(stage: Stage, fault: Fault) -> None:
    """Of neighbouring activities each meets every second fault, and its neighbour the others."""
    await _play(stage, fault, cases()[list(Fault).index(fault) % 2 :: 2])


@astray
@pytest.mark.soak
@pytest.mark.parametrize("fault", Fault)
async def test_every_operation_and_every_fault(stage: Stage, fault: Fault) -> None:
    await _play(stage, fault, cases())


@astray
@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.HOST_AWAY])
async def test_one_of_each_kind_on_mysql(mysql_stage: Stage, fault: Fault) -> None:
    """At the first step of each kind that takes an activity of its own."""
    first = {
        case.type: case for case in reversed(cases()) if case.activity is not None and case.activity not in LEAD_IN
    }
    await _play(mysql_stage, fault, list(first.values()))


@astray
@pytest.mark.soak
@pytest.mark.parametrize("fault", Fault)
async def test_all_of_it_on_mysql(mysql_stage: Stage, fault: Fault) -> None:
    await _play(mysql_stage, fault, cases())


async def _play(stage: Stage, fault: Fault, held: list[Case]) -> None:
    databases = await asyncio.gather(*(stage.prepared(case.type) for case in held))
    for case, database in zip(held, databases, strict=True):
        case.database = database
    for case in held:
        await stage.begin(case, fault)
    await stage.world.hurry()
    await until(lambda: Reached(_on_their_way(held)))
    await _meet(stage, fault, held)
    await until(lambda: _at_rest(stage))
    if fault not in (Fault.CANCELLED, Fault.DELETED):
        await until(lambda: _unsuccessful(held))


async def _unsuccessful(held: list[Case]) -> Reached:
    """What has not succeeded: at first also what waits out its grace."""
    outcomes = [(case, (await case.now()).status.value) for case in held]
    return Reached([f"{case} is {status}" for case, status in outcomes if status != "succeeded"])


async def _meet(stage: Stage, fault: Fault, held: list[Case]) -> None:
    """The fault, from its begin to its end, with all gates open afterwards."""
    world_ = stage.world
    match fault:
        case Fault.KILLED | Fault.ANSWER_LOST:
            for case in held:
                for gate in case.gates:
                    gate.dies = True
            _open(held)
        case Fault.HOST_AWAY:
            await world_.host.cut()
            _open(held)
            await until(lambda: _all_say_why(held))
            await world_.host.restore()
            await _retry(held)
        case Fault.TEMPORAL_AWAY:
            await world_.temporal.cut()
            late = Case(OperationType.LIMITS, "apply_limits", "apply_limits", await _some_active(stage))
            await stage.begin(late, fault)
            _open([late])
            _open(held)
            await until(lambda: _all_say_why([late]))
            assert (await late.now()).undoable
            await world_.temporal.restore()
        case Fault.STORE_AWAY:
            await world_.store.cut()
            _open(held)
            await until(lambda: world_.gates.failures[STORE_UNAVAILABLE] >= len(held) // 2)
            await world_.store.restore()
        case Fault.CANCELLED:
            for case in held:
                await _cancel(case)
            _open(held)
        case Fault.RETRIED:
            await _retry(held)
            _open(held)
        case Fault.DELETED:
            for case in held:
                await _delete_now(case)
            _open(held)


def _on_their_way(held: list[Case]) -> list[str]:
    """Those that have not come to their gates."""
    return [str(case) for case in held if not all(gate.reached.is_set() for gate in case.gates)]


def _open(held: list[Case]) -> None:
    for case in held:
        for gate in case.gates:
            gate.opened.set()


async def _all_say_why(held: list[Case]) -> bool:
    """Each has ended, or waits with a reason, and can be cancelled if its kind can at that point."""
    for case in held:
        now = await case.now()
        if not now.ended and (now.reason is None or not (now.undoable or now.irrevocable_step)):
            return False
    return True


async def _at_rest(stage: Stage) -> Reached:
    await stage.world.hurry()
    return Reached(await stage.world.faults())


async def _cancel(case: Case) -> None:
    assert case.operation is not None
    async with transaction():
        now = await case.now()
        try:
            await operation_service.cancel_any(DEFAULT_PLANS, CANCELLATIONS, case.operation)
        except OperationNotCancellable:
            assert now.type is OperationType.DELETE, f"{case} was refused"


async def _retry(held: list[Case]) -> None:
    for case in held:
        assert case.operation is not None
        async with transaction():
            with contextlib.suppress(OperationEnded):
                await operation_service.retry_any(case.operation)


async def _delete_now(case: Case) -> None:
    assert case.database is not None
    async with transaction():
        try:
            await service.delete_any(DEFAULT_PLANS, case.database, timedelta(0))
        except NotFound:
            assert case.type is OperationType.DELETE


async def _some_active(stage: Stage) -> UUID:
    rows = await stage.world.rows("SELECT uuid FROM databases WHERE status = 'active' LIMIT 1")
    return UUID(str(rows[0]["uuid"]))
