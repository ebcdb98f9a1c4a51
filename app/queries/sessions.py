"""Sessions on a question's database: opened for one question, with the least rights that do."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TypeVar
from uuid import UUID

import structlog

from app.contracts.base import DatabaseStatus
from app.core.errors import DatabaseNotActive, DatabaseUnreachable
from app.core.ids import engine_password
from app.core.limiter import Limiter, LimitReached
from app.core.secrets import SecretBox
from app.credentials import restoring
from app.databases import records as databases
from app.databases.passwords import tenant_of
from app.engines.base import CredentialsRefused, EngineAdapter, EngineError, LoginRefused
from app.engines.querying import READER_SESSIONS, QueryLimits, ReadSession, WriteSession
from app.hosts.adapters import Adapters
from app.queries.targets import QueryTarget, reader_place
from app.quotas.plans import Plans
from app.store.locks import LockBusy, LockLost, database_lock
from app.store.session import fetch_scalar

log = structlog.get_logger(__name__)
Session = TypeVar("Session")

_FULL = frozenset({"53300", "1203", "1226", "1040"})
_FULL_SECONDS = 5.0
"""How long a question waits for a place among the database's sessions."""
_READING = READER_SESSIONS - 1
"""How many read sessions of one database this process has at the same time."""
_OF_ONE_TEAM, _OF_ALL = 2, 4
"""How many questions of one team, and of all teams, put accounts right at the same time. Each holds a connection to our
own database for the lock, and takes a second one: as many as the pool has would wait for each other."""
WAIT_SECONDS = 20.0
"""How long a question waits for a read session, and for its turn. Its place in the day's allowance outlasts the model's
time by more than all its waits: whoever loses that place is told that the model was too slow."""


class Sessions:
    def __init__(self, plans: Plans, box: SecretBox, adapters: Adapters, limits: QueryLimits) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._limits = limits
        self._reading = Limiter[UUID](_READING)
        self._of_database = Limiter[UUID](1)
        self._of_team = Limiter[int](_OF_ONE_TEAM, total=_OF_ALL)
        self.idle = Limiter[UUID](1)
        """One place for each database: for a session that stays open while the model takes its time."""

    @asynccontextmanager
    async def reading(self, target: QueryTarget) -> AsyncIterator[ReadSession]:
        """A session of the SELECT-only account, which is made where there is none yet. Raises `DatabaseUnreachable`,
        `DatabaseNotActive` or `NotFound`."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._reading.slot(target.uuid, timeout=WAIT_SECONDS))
            except LimitReached:
                raise _full() from None
            password = target.reader_password(self._box) or await self.make_reader(target)
            adapter, tenant = await self._adapters.of(target.host), target.tenant(self._box)
            try:
                session = await _entered(stack, lambda: adapter.reading(tenant, password, self._limits))
            except LoginRefused:
                renewed = await self.make_reader(target)
                try:
                    session = await _entered(stack, lambda: adapter.reading(tenant, renewed, self._limits))
                except LoginRefused as error:
                    raise _unreachable(error) from None
            yield session

    @asynccontextmanager
    async def writing(self, target: QueryTarget) -> AsyncIterator[WriteSession]:
        """A session of the tenant's own account. Raises `DatabaseUnreachable`."""
        adapter, tenant = await self._adapters.of(target.host), target.tenant(self._box)
        async with AsyncExitStack() as stack:
            try:
                session = await _entered(stack, lambda: adapter.writing(tenant, self._limits))
            except LoginRefused:
                session = await self._entered_restored(stack, target, adapter)
            yield session

    async def _entered_restored(
        self, stack: AsyncExitStack, target: QueryTarget, adapter: EngineAdapter
    ) -> WriteSession:
        """Opens a session after the tenant has changed the account's password, or after it was rotated since the target
        was read."""
        try:
            async with self._turn(target):
                # Another question may have restored it while this one waited.
                with suppress(CredentialsRefused):
                    return await self._entered_as_recorded(stack, target, adapter)
                await restoring.restore(self._plans, self._box, adapter, target.uuid)
                return await self._entered_as_recorded(stack, target, adapter)
        except (LockBusy, LockLost):
            raise _busy() from None
        except EngineError as error:
            raise _unreachable(error) from None

    async def _entered_as_recorded(
        self, stack: AsyncExitStack, target: QueryTarget, adapter: EngineAdapter
    ) -> WriteSession:
        """Opens a session with the credentials that are recorded now. Raises `LoginRefused` or
        `DatabaseUnreachable`."""
        record = await databases.find(target.uuid)
        assert record is not None, "rows of databases with a team are kept"
        tenant = tenant_of(record, self._box)
        return await _entered(stack, lambda: adapter.writing(tenant, self._limits))

    async def make_reader(self, target: QueryTarget) -> str:
        """Makes or repairs the SELECT-only account, and returns its password. The password is stored before the account
        exists: whoever comes after a crash finishes the work."""
        try:
            async with self._turn(target), database_lock(target.uuid):
                record = await databases.get_live(target.uuid)
                if record.status is not DatabaseStatus.ACTIVE:
                    raise DatabaseNotActive(record.status.value)
                password = await self._kept_password(target)
                await (await self._adapters.of(target.host)).make_reader(target.tenant(self._box), password)
                return password
        except (LockBusy, LockLost):
            raise _busy() from None
        except EngineError as error:
            raise _unreachable(error) from None

    @asynccontextmanager
    async def _turn(self, target: QueryTarget) -> AsyncIterator[None]:
        """Holds the turn to put the database's accounts right for the block, which takes the database's lock. Whoever
        waits for a turn holds no connection to our own database. Raises `DatabaseUnreachable` after `WAIT_SECONDS`."""
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await held.enter_async_context(self._of_database.slot(target.uuid))
                    await held.enter_async_context(self._of_team.slot(target.team_id))
            except TimeoutError:
                raise _busy() from None
            yield

    async def _kept_password(self, target: QueryTarget) -> str:
        place = reader_place(target.uuid)
        sealed = self._box.seal(engine_password(), place)
        kept = await fetch_scalar(
            bytes,
            "INSERT INTO query_readers (database_id, password_sealed) VALUES ($1, $2)"
            " ON CONFLICT (database_id) DO UPDATE SET database_id = excluded.database_id RETURNING password_sealed",
            target.id,
            sealed,
        )
        return self._box.open(kept, place)


async def _entered(stack: AsyncExitStack, opening: Callable[[], AbstractAsyncContextManager[Session]]) -> Session:
    """Opens a session; waits a little where all places are taken. Raises `LoginRefused` or `DatabaseUnreachable`."""
    deadline = time.monotonic() + _FULL_SECONDS
    while True:
        try:
            return await stack.enter_async_context(opening())
        except LoginRefused:
            raise
        except EngineError as error:
            if error.code not in _FULL or time.monotonic() > deadline:
                raise _unreachable(error) from None
        await asyncio.sleep(0.1)


def _busy() -> DatabaseUnreachable:
    return DatabaseUnreachable("Another step is at work on the database.")


def _full() -> DatabaseUnreachable:
    return DatabaseUnreachable("All connections of the database are taken.")


def _unreachable(error: EngineError) -> DatabaseUnreachable:
    """The reason goes to our log: it names the host as only we know it."""
    log.warning("database_unreachable", reason=str(error), code=error.code)
    return _full() if error.code in _FULL else DatabaseUnreachable("The database can't be reached.")
