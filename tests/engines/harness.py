"""What the conformance suite needs of a host beside the adapter: other people's ways in."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.core import ids
from app.engines.base import AdminAddress, EngineAdapter, EngineLimits, Tenant

LIMITS = EngineLimits(connections=5)


class RefusedError(Exception):
    """The engine refused a statement or a login; `code` is its own, as text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Session(ABC):
    """One plain client's connection."""

    @abstractmethod
    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Raises `RefusedError`, or `ConnectionError` when the session is over."""

    @abstractmethod
    async def close(self) -> None: ...


class EngineHost(ABC):
    """A running server with an adapter on it, as the service's administrator."""

    flavour: str
    adapter: EngineAdapter
    administrator: AdminAddress

    @abstractmethod
    async def root(self) -> Session:
        """The server's full administrator."""

    @abstractmethod
    async def login(self, tenant: Tenant, *, database: str | None = None) -> Session:
        """As a client of the tenant would. Raises `RefusedError`."""

    @abstractmethod
    async def catalog(self) -> set[tuple[Any, ...]]:
        """Everything on the server that a tenant of this installation could leave behind."""

    @abstractmethod
    async def sessions(self, account: str) -> int:
        """How many the server shows of the account and its helpers."""

    @abstractmethod
    async def statements(self, account: str) -> list[str]:
        """What sessions of the account and its helpers execute now, those that wait for a lock among them."""

    @abstractmethod
    async def lock_waits(self, account: str) -> int:
        """How many sessions of the account and its helpers wait for a lock now."""

    async def as_root_in(self, tenant: Tenant, statement: str) -> list[tuple[Any, ...]]:
        """As the server's full administrator, in the tenant's database."""
        return await as_root(self, statement)

    @abstractmethod
    async def rights(self, tenant: Tenant) -> set[tuple[Any, ...]]:
        """Every right that somebody holds in the tenant's database, on it or on what is in it."""

    @abstractmethod
    async def make_part(self, part: str, tenant: Tenant) -> None:
        """What a crash in the middle of `create` leaves: see `parts`."""

    parts: tuple[str, ...]

    @abstractmethod
    async def make_stranger(self, name: str, part: str) -> None:
        """Somebody else's `role` or `database` of this name, or `both`."""

    @abstractmethod
    async def drop_stranger(self, name: str) -> None: ...

    @abstractmethod
    async def make_helper(self, tenant: Tenant, helper: Tenant) -> None:
        """A second role of the service's, which may log in to the tenant's database."""

    @abstractmethod
    def load_statement(self, megabytes: int) -> str:
        """Fills `loaded (t text)`, made before, with this much."""


def new_tenant(**changes: str) -> Tenant:
    values = {
        "name": ids.engine_name(),
        "password": ids.engine_password(),
        "marker": ids.marker(uuid.uuid4()),
    }
    return Tenant(**(values | changes))


@asynccontextmanager
async def tenants(host: EngineHost, count: int = 1, limits: EngineLimits = LIMITS) -> AsyncIterator[list[Tenant]]:
    """Fresh tenants, destroyed at the end whatever became of them."""
    made = [new_tenant() for _ in range(count)]
    try:
        for tenant in made:
            await host.adapter.create(tenant, limits)
        yield made
    finally:
        for tenant in made:
            await host.adapter.destroy(tenant)


@asynccontextmanager
async def session_of(host: EngineHost, tenant: Tenant) -> AsyncIterator[Session]:
    session = await host.login(tenant)
    try:
        yield session
    finally:
        await session.close()


def kind_of(host: EngineHost) -> str:
    """`postgres`, or `mysql` for both of that family."""
    return "postgres" if host.flavour == "postgres" else "mysql"


async def refusal(session: Session, statement: str) -> str | None:
    """The code with which the engine refuses the statement; None when it doesn't."""
    try:
        await session.run(statement)
    except RefusedError as error:
        return error.code
    return None


async def as_root(host: EngineHost, *statements: str) -> list[tuple[Any, ...]]:
    """Runs them all, and returns the last one's rows."""
    session = await host.root()
    try:
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            rows = await session.run(statement)
        return rows
    finally:
        await session.close()
