"""The API in this process over real hosts: what a workflow would do, the test does, and may die within."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx

from activities.credentials import CredentialActivitiesOnHosts
from app.core.ids import marker
from app.databases.records import DatabaseRecord
from app.engines.base import EngineAdapter, Tenant
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.store.session import fetch
from tests.quotas.bench import Bench
from tests.support.client import Caller
from tests.support.waiting import until


class Died(BaseException):
    """What a killed worker leaves undone. No `Exception`: nothing of ours may clean up after it."""


class MortalAdapter:
    """A host's adapter under which the worker dies at a call of one method, before it or after."""

    def __init__(self, adapter: EngineAdapter, method: str, *, after: bool) -> None:
        self._adapter = adapter
        self._method = method
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._adapter, name)
        if name != self._method:
            return found

        async def call(*arguments: Any, **named: Any) -> None:
            if self._after:
                await found(*arguments, **named)
            raise Died

        return call


class MortalAdapters:
    def __init__(self, adapters: Adapters, method: str, *, after: bool) -> None:
        self._adapters = adapters
        self._method = method
        self._after = after

    async def of_host(self, host_id: int) -> Any:
        return MortalAdapter(await self._adapters.of_host(host_id), self._method, after=self._after)


@dataclass
class Stepped:
    """`caller` is one of its API."""

    bench: Bench
    caller: Caller

    async def created(self, engine: str, **fields: Any) -> dict[str, Any]:
        """An active database of the caller's."""
        answer = await self.caller.create("db", db_type=engine, region="bench-1", **fields)
        made: dict[str, Any] = answer.json()["data"]
        await self.bench.steps.create_database(UUID(made["uuid"]))
        return made

    async def step(self, made: dict[str, Any]) -> str:
        """What the workflow does."""
        return await self._activities(self.bench.adapters).apply_credentials(UUID(made["uuid"]))

    async def die_in_step(self, made: dict[str, Any], method: str, *, after: bool) -> None:
        """The same, killed at the adapter's first call of that method."""
        mortal: Any = MortalAdapters(self.bench.adapters, method, after=after)
        try:
            await self._activities(mortal).apply_credentials(UUID(made["uuid"]))
        except Died:
            return
        raise AssertionError(f"{method} was not called")

    def _activities(self, adapters: Any) -> CredentialActivitiesOnHosts:
        return CredentialActivitiesOnHosts(self.bench.plans, self.bench.box, adapters, HostSlots())

    def tenant(self, made: dict[str, Any]) -> Tenant:
        return Tenant(name=made["db_name"], password=made["db_password"], marker=marker(UUID(made["uuid"])))

    async def record(self, made: dict[str, Any]) -> DatabaseRecord:
        return await self.bench.record(made)

    @asynccontextmanager
    async def asked(self, method: str, path: str, body: Any = None) -> AsyncIterator["asyncio.Task[httpx.Response]"]:
        """A request that waits for the engine, from when it is accepted on."""
        key = str(uuid4())
        post = method == "POST"
        waiting = asyncio.create_task(
            self.caller.post(path, body or {}, key=key) if post else self.caller.delete(path, key=key)
        )

        async def accepted() -> bool:
            rows = await fetch("SELECT 1 FROM idempotency_keys WHERE key = $1 AND resource IS NOT NULL", key)
            return bool(rows) or waiting.done()

        await until(accepted)
        try:
            yield waiting
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def answered(self, waiting: "asyncio.Task[httpx.Response]", made: dict[str, Any]) -> httpx.Response:
        """The answer, once the engine has followed."""
        await self.step(made)
        return await waiting
