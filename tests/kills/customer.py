"""A customer who uses everything, whatever dies meanwhile, and remembers what was answered."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import asyncpg
import httpx

from app.contracts.base import Engine
from tests.e2e.hosts import mysql, postgres
from tests.e2e.patient_client import Answered, PatientClient
from tests.support.model_server import script, sql
from tests.support.people import follow, link_for
from tests.support.waiting import until

_SETTLED = 240.0
_AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, httpx.HTTPError)
"""Of this process's own look at our own database, and of a request whose answer was lost."""
_NOT_NOW = (409, 429)
"""A change is refused while another one is under way, or beyond what a team may have at once."""


@dataclass
class Kept:
    """A database that its customer was told of, and what it should be."""

    uuid: str
    engine: str
    connection_string: str
    labels: dict[str, str] = field(default_factory=dict)
    connections: int | None = None
    tables: list[str] = field(default_factory=list)

    async def tables_there(self, connection_string: str) -> bool:
        """Whether its blueprints' tables are in the database."""
        query = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'made_%'"
        if self.engine == Engine.POSTGRES:
            async with postgres(connection_string) as connection:
                found = await connection.fetch(query)
        else:
            async with mysql(connection_string) as cursor:
                await cursor.execute(query.replace("%", "%%"))
                found = await cursor.fetchall()
        return {row[0] for row in found} >= set(self.tables)


@dataclass
class Journal:
    """What all customers were told."""

    kept: dict[str, Kept] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    teams: dict[str, str] = field(default_factory=dict)
    """Names by id."""
    undeleted: list[str] = field(default_factory=list)
    """A database as often as it came back."""
    keys: list[str] = field(default_factory=list)
    """Texts of those in force."""
    acts: dict[str, int] = field(default_factory=dict)
    """How many of each came to their end."""
    faults: list[str] = field(default_factory=list)


async def lets_in(client: PatientClient, key: str) -> bool:
    """Whether the API takes requests with this key."""

    async def status() -> int:
        """0 without an answer."""
        with contextlib.suppress(httpx.TransportError):
            answer = await client.http.get("/me", headers={"Authorization": f"Bearer {key}"})
            if answer.status_code < 500:
                return answer.status_code
        return 0

    return await until(status, timeout=_SETTLED) == 200


class Customer:
    """Works on databases of its own, one act after the other, so that it knows what each of them should be."""

    def __init__(
        self,
        client: PatientClient,
        journal: Journal,
        chance: random.Random,
        engines: tuple[Engine, ...],
        dsn: str,
        *,
        regions: tuple[str, ...] = ("us-east-1",),
        asks: bool = True,
    ) -> None:
        """`asks`: whether there is a model for questions."""
        self._client = client
        self._journal = journal
        self._chance = chance
        self._engines = engines
        self._dsn = dsn
        """Of our own database, for links to sign in with."""
        self._regions = regions
        self._asks = asks
        self._mine: list[Kept] = []

    async def work(self, user_id: int, stop: asyncio.Event) -> None:
        self._user_id = user_id
        acts: list[tuple[Callable[[Kept], Awaitable[None]], int]] = [
            (self._drop, 5),
            (self._undelete, 2),
            (self._label, 3),
            (self._quota, 3),
            (self._pause, 2),
            (self._apply, 3),
            (self._ask, 3 if self._asks else 0),
            (self._back_up, 2),
            (self._rotate, 2),
            (self._user, 2),
            (self._team, 1),
            (self._key, 1),
            (self._sign_in, 1),
        ]
        while not stop.is_set():
            if len(self._mine) < 3:
                await self.make(self._chance.choice(self._engines).value)
                continue
            [act] = self._chance.choices([one for one, _ in acts], [weight for _, weight in acts])
            await act(self._chance.choice(self._mine))
            self._count(act.__name__)
            await asyncio.sleep(self._chance.uniform(0, 0.3))

    async def make(self, engine: str, source: dict[str, Any] | None = None, tables: list[str] | None = None) -> None:
        body: dict[str, Any] = {"name": "mine"}
        body |= {"source": source} if source else {"db_type": engine, "region": self._chance.choice(self._regions)}
        answer = await self._client.send("POST", "/databases?wait=true&timeout=30", None, body)
        if answer.status in _NOT_NOW:
            return
        uuid = answer.data["uuid"]
        self._journal.made.add(uuid)
        shown = await self._until_it_is(uuid, "active")
        made = Kept(uuid, engine, shown["connection_string"], tables=list(tables or []))
        self._journal.kept[uuid] = made
        self._mine.append(made)
        self._count("restore" if source else "create")

    async def _drop(self, one: Kept) -> None:
        answer = await self._client.delete(one.uuid)
        if self._done(answer, "delete"):
            self._forget(one)

    def _forget(self, one: Kept) -> None:
        self._mine.remove(one)
        del self._journal.kept[one.uuid]
        self._journal.deleted.add(one.uuid)

    async def _undelete(self, one: Kept) -> None:
        """Deleted and brought back, unless its destruction came first."""
        answer = await self._client.delete(one.uuid)
        if not self._done(answer, "delete"):
            return
        answer = await self._client.send("POST", f"/databases/{one.uuid}/undeletions", None, None)
        if answer.status == 404:
            self._forget(one)
        elif self._done(answer, "undelete"):
            self._journal.undeleted.append(one.uuid)
            await self._until_it_is(one.uuid, "active")

    async def _label(self, one: Kept) -> None:
        labels = {"turn": str(self._chance.randrange(10**6))}
        answer = await self._client.send("PATCH", f"/databases/{one.uuid}", None, {"labels": labels})
        if self._done(answer, "label"):
            one.labels = labels

    async def _quota(self, one: Kept) -> None:
        connections = self._chance.randrange(2, 9)
        body = {"connection_hard_limit": connections}
        answer = await self._client.send("PATCH", f"/databases/{one.uuid}/quotas", None, body)
        if self._done(answer, "quota"):
            one.connections = connections

    async def _pause(self, one: Kept) -> None:
        answer = await self._client.send("POST", f"/databases/{one.uuid}/pauses", None, None)
        if not self._done(answer, "pause"):
            return
        answer = await self._client.send("DELETE", f"/databases/{one.uuid}/pauses", None, None)
        if self._done(answer, "resume"):
            await self._until_it_is(one.uuid, "active")

    async def _apply(self, one: Kept) -> None:
        table = f"made_{self._chance.randrange(10**9)}"
        blueprint = {"name": "table", "sql_content": f"CREATE TABLE {table} (id integer PRIMARY KEY)"}
        written = await self._client.send("POST", "/blueprints", None, blueprint)
        if not self._done(written, "blueprint"):
            return
        path = f"/databases/{one.uuid}/blueprint_applications"
        answer = await self._client.send("POST", path, None, {"blueprint_uuid": written.data["uuid"], "timeout": 30})
        if not self._done(answer, "apply"):
            return
        ended = await self._ended(f"/blueprint_applications/{answer.data['id']}")
        # What was under way when its server died is `unknown`, and said to be.
        if ended["status"] == "completed":
            one.tables.append(table)
        await self._client.send("DELETE", f"/blueprints/{written.data['uuid']}", None, None)

    async def _ask(self, one: Kept) -> None:
        question = {"database_uuid": one.uuid, "query": script(sql("SELECT 1 AS one"))}
        answer = await self._client.send("POST", "/query_executions", None, question)
        if answer.status not in (200, 502, 504):
            self._done(answer, "ask")

    async def _back_up(self, one: Kept) -> None:
        tables = list(one.tables)
        answer = await self._client.send("POST", f"/databases/{one.uuid}/backups?wait=true&timeout=30", None, {})
        if not self._done(answer, "backup"):
            return
        path = f"/backups/{answer.data['uuid']}"
        ended = await self._ended(path)
        if ended["status"] == "completed" and self._chance.random() < 0.5:
            await self.make(one.engine, {"backup_uuid": answer.data["uuid"]}, tables)
        await self._client.send("DELETE", path, None, None)

    async def _rotate(self, one: Kept) -> None:
        path = f"/databases/{one.uuid}/credential_rotations"
        answer = await self._client.send("POST", path, None, {"overlap_seconds": 0})
        if self._done(answer, "rotate"):
            shown = await self._until_it_is(one.uuid, "active")
            one.connection_string = shown["connection_string"]

    async def _user(self, one: Kept) -> None:
        body = {"name": "reporting", "access": "read_only"}
        answer = await self._client.send("POST", f"/databases/{one.uuid}/users", None, body)
        if self._done(answer, "user"):
            answer = await self._client.send("DELETE", f"/databases/{one.uuid}/users/reporting", None, None)
            self._done(answer, "removal of a user")

    async def _team(self, _: Kept) -> None:
        name = f"Team {uuid4().hex[:8]}"
        answer = await self._client.send("POST", "/teams", None, {"name": name})
        if not self._done(answer, "team"):
            return
        team = str(answer.data["id"])
        self._journal.teams[team] = name
        if self._chance.random() < 0.9:  # a person may be in twenty
            answer = await self._client.send("DELETE", f"/teams/{team}", None, None)
            if self._done(answer, "removal of a team"):
                del self._journal.teams[team]

    async def _key(self, _: Kept) -> None:
        """Made, replaced at once, and mostly revoked; each text is let in for as long as it is in force."""
        body = {"name": "made", "permissions": ["databases:read"]}
        answer = await self._client.send("POST", "/api_keys", None, body)
        if not self._done(answer, "key"):
            return
        first, path = answer.body["api_key"], f"/api_keys/{answer.data['id']}"
        answer = await self._client.send("POST", f"{path}/rotations", None, {"overlap_seconds": 0})
        if not self._done(answer, "rotation of a key"):
            return
        second, stays = answer.body["api_key"], self._chance.random() < 0.1
        if not stays:
            self._done(await self._client.send("DELETE", path), "revocation of a key")
        if (await lets_in(self._client, first), await lets_in(self._client, second)) != (False, stays):
            self._journal.faults.append(f"a key at {path} is let in, or not, against what was answered")
        if stays:
            self._journal.keys.append(second)

    async def _sign_in(self, _: Kept) -> None:
        """An answer that was lost has used up its link; then another link is made."""
        with contextlib.suppress(*_AWAY):
            token = await link_for(self._dsn, self._user_id)
            async with httpx.AsyncClient(base_url=self._client.http.base_url.join("/"), trust_env=False) as http:
                answer = await follow(http, token)
            if answer.status_code not in (201, 503):
                self._journal.faults.append(f"a link to sign in: {answer.status_code} {answer.text}")

    async def _until_it_is(self, uuid: str, status: str) -> dict[str, Any]:
        return await self._look(f"/databases/{uuid}", lambda shown: shown["status"] == status)

    async def _ended(self, path: str) -> dict[str, Any]:
        return await self._look(path, lambda shown: shown["status"] not in ("pending", "running"))

    async def _look(self, path: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        shown: dict[str, Any] = {}

        async def look() -> bool:
            shown.update((await self._client.send("GET", path)).data)
            return fits(shown)

        await until(look, timeout=_SETTLED)
        return shown

    def _done(self, answer: Answered, what: str) -> bool:
        if answer.status < 300:
            return True
        if answer.status not in _NOT_NOW:
            self._journal.faults.append(f"{what}: {answer.status} {answer.body}")
        return False

    def _count(self, what: str) -> None:
        name = what.lstrip("_")
        self._journal.acts[name] = self._journal.acts.get(name, 0) + 1
