"""Clients that work while an installation is upgraded, and hold every answer against what they were told before."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from app.contracts.base import Engine

_CREATE = "?wait=true&timeout=60"
_APIS = 2
"""Behind the proxy."""


@dataclass
class Journal:
    """What clients asked for and were told."""

    kept: dict[str, str] = field(default_factory=dict)
    """Of the databases that must be there, the connection strings by uuid."""
    deleted: set[str] = field(default_factory=set)
    requests: int = 0
    failed: list[str] = field(default_factory=list)
    """Answers that were not as they should be, in words."""
    repeated: list[str] = field(default_factory=list)
    """Those with status 500, which were asked for again."""
    rounds: int = 0


class Client:
    """One client: it sends each request once, and every failure counts. What is answered with 500 is repeated, as
    docs/upgrading.md says: each process of the release may answer so once, and a repeat reaches the next one."""

    def __init__(self, http: httpx.AsyncClient, api_key: str, journal: Journal) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {api_key}"}
        self._journal = journal

    async def ask(self, method: str, path: str, body: Any = None, *, status: int, key: str | None = None) -> Any:
        """The answer's data, or None where it is not as expected."""
        self._journal.requests += 1
        headers = {**self._headers, "Idempotency-Key": key or str(uuid4())}
        try:
            for _ in range(1 + _APIS):
                answer = await self._http.request(method, f"/api/v1{path}", json=body, headers=headers)
                if answer.status_code != 500:
                    break
                self._journal.repeated.append(f"{method} {path}: {answer.text}")
        except httpx.TransportError as fault:
            self._journal.failed.append(f"{method} {path}: {type(fault).__name__} {fault}")
            return None
        if answer.status_code != status:
            self._journal.failed.append(f"{method} {path}: {answer.status_code} {answer.text}")
            return None
        return answer.json()["data"]

    async def work(self, chance: random.Random, engines: tuple[Engine, ...], stop: asyncio.Event, pause: float) -> None:
        """Rounds of creates, reads, blueprints and deletes, until told to stop."""
        mine: list[str] = []
        while not stop.is_set():
            await self._round(chance, chance.choice(engines), mine)
            self._journal.rounds += 1
            await asyncio.sleep(pause)

    async def _round(self, chance: random.Random, engine: Engine, mine: list[str]) -> None:
        key, body = str(uuid4()), {"name": "a-database", "db_type": engine.value}
        made = await self.ask("POST", f"/databases{_CREATE}", body, status=201, key=key)
        if made is None:
            return
        self._journal.kept[made["uuid"]] = made["connection_string"]
        mine.append(made["uuid"])
        again = await self.ask("POST", f"/databases{_CREATE}", body, status=201, key=key)
        if again is not None and again["uuid"] != made["uuid"]:
            self._journal.failed.append(f"the key {key} made two databases")
        await self.ask("GET", "/databases?limit=10", status=200)
        await self._apply(made["uuid"])
        if len(mine) > 1:
            await self._delete(mine.pop(chance.randrange(len(mine))))

    async def _apply(self, database: str) -> None:
        sql = "CREATE TABLE notes (id integer PRIMARY KEY)"
        written = await self.ask("POST", "/blueprints", {"name": "notes", "sql_content": sql}, status=201)
        if written is None:
            return
        body = {"blueprint_uuid": written["uuid"], "timeout": 60}
        applied = await self.ask("POST", f"/databases/{database}/blueprint_applications", body, status=200)
        if applied is not None and applied["status"] != "completed":
            self._journal.failed.append(f"the application {applied['id']} is {applied['status']}")

    async def _delete(self, database: str) -> None:
        if await self.ask("DELETE", f"/databases/{database}", status=200) is not None:
            del self._journal.kept[database]
            self._journal.deleted.add(database)


@asynccontextmanager
async def working(
    url: str, api_key: str, engines: tuple[Engine, ...], *, clients: int, pause: float, seed: int = 1
) -> AsyncIterator[Journal]:
    """Clients that work during the block, with a pause after each round. After it each ends the round that it is in."""
    journal, stop = Journal(), asyncio.Event()
    async with httpx.AsyncClient(base_url=url, timeout=90, trust_env=False) as http, asyncio.TaskGroup() as group:
        for number in range(clients):
            chance = random.Random(f"{seed} {number}")
            group.create_task(Client(http, api_key, journal).work(chance, engines, stop, pause))
        try:
            yield journal
        finally:
            stop.set()
