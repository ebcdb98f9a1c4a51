"""Databases that are deleted, undeleted, destroyed, protected, paused and left to expire at the same moment, while
steps of workers come late.

A race is a few such moves at once on one database, whose row then comes to rest. After each race the database is either
whole, and open or closed as its row says, or gone, and not before its time.
"""

import asyncio
import contextlib
import itertools
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import msgspec
from temporalio.exceptions import ApplicationError

from activities.engine import EngineActivitiesOnHosts
from app.core.errors import DatabaseNotActive
from app.databases import records
from app.databases.deletion import wake_deletion
from app.provisioning import operator, service
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, fetch_one, fetch_values, transaction
from tests.e2e.patient_client import Answered, PatientClient
from tests.quotas.tenant_session import session_of
from tests.support.waiting import until

GRACE = timedelta(hours=1)
REST_SECONDS = 120.0
"""A killed worker or API is started again meanwhile."""
_APART_SECONDS = (0.01, 0.05, 0.2, 0.6)
"""The moves of a race begin within one of these, and what they move to now comes within it. A request is under way for
the shortest, what follows from it in workflows and on the host for the longest."""

_LIFE = re.compile(r"(deleted undeleted )*(deleted (destroyed )?)?")
_ANSWERS: dict[str, set[tuple[int, str | None]]] = {
    "delete": {(200, None), (404, "not_found"), (409, "deletion_protected"), (409, "deletion_undone")},
    "undelete": {(200, None), (404, "not_found"), (409, "not_deleted")},
    "change": {(200, None), (404, "not_found"), (422, "invalid_field")},
}


class Row(msgspec.Struct, frozen=True):
    status: str
    at_rest: bool
    destroyed: bool
    in_time: bool
    """Not destroyed before its time."""


_ROW = """
SELECT status, destroyed_at IS NOT NULL AS destroyed, coalesce(destroyed_at >= destroy_at, true) AS in_time,
       CASE WHEN status = 'deleted' THEN destroyed_at IS NOT NULL OR revoked_at IS NOT NULL AND destroy_at > now()
            ELSE access_applied >= access_revision AND (status = 'active' OR paused_reason IS NOT NULL)
                 -- Clients set five minutes and more: what is nearer is about to be deleted.
                 AND coalesce(expires_at > now() + interval '1 minute', true) END AS at_rest
FROM databases WHERE uuid = $1
"""
_EVENTS = """
SELECT e.type || CASE WHEN (e.payload->'data'->>'deletion_protection')::boolean THEN ' protected' ELSE '' END
FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1 ORDER BY e.id
"""


@dataclass
class Contest:
    """`ended` counts the races by what became of their database, `gone` has the names of those destroyed."""

    client: PatientClient
    steps: EngineActivitiesOnHosts
    engine: str
    chance: random.Random
    ended: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    gone: list[str] = field(default_factory=list)

    @property
    def races(self) -> int:
        return sum(self.ended.values())

    async def run(self, races: int, tables: int, seconds: float) -> None:
        """So many races, on so many databases side by side; none begins after that time. In the end none of the
        databases is left."""
        ends = time.monotonic() + seconds
        left = itertools.takewhile(lambda _: time.monotonic() < ends, range(races))
        async with asyncio.TaskGroup() as group:
            for _ in range(tables):
                group.create_task(self._play(left))

    async def _play(self, left: Iterator[int]) -> None:
        database = await Contestant.new(self)
        for _ in left:
            if await database.race() == "destroyed":
                database = await Contestant.new(self)
        await database.retire()


@dataclass
class Contestant:
    """One database, as it was after its last race, with as many rows as were written into it."""

    contest: Contest
    made: dict[str, Any]
    status: str = "active"
    rows: int = 0
    apart: float = 0
    """Of the moves of this race, in seconds."""

    @classmethod
    async def new(cls, contest: Contest) -> "Contestant":
        answer = await contest.client.create(contest.engine, wait=60)
        database = cls(contest, answer.data)
        await database._rest()
        async with session_of(database.made) as session:
            await session.run("CREATE TABLE kept (n int)")
        return database

    @property
    def uuid(self) -> UUID:
        return UUID(self.made["uuid"])

    @property
    def path(self) -> str:
        return f"/databases/{self.made['uuid']}"

    async def race(self) -> str:
        """What became of it: `active`, `paused`, `deleted` or `destroyed`."""
        moves = self._chosen()
        self.apart = self.contest.chance.choice(_APART_SECONDS)
        self.contest.moves.update(move.__name__.strip("_") for move in moves)
        await asyncio.gather(*(self._begin(move) for move in moves))
        await self._rest()
        # A worker that hangs may go on at any time.
        await self._late_step()()
        row = await self._rest()
        end = "destroyed" if row.destroyed else row.status
        said = f"{self.made['uuid']} after {[move.__name__ for move in moves]}"
        assert row.in_time, f"{said} was destroyed before its time"
        await self._check_life(said)
        assert await self._is_open() == (row.status == "active"), f"{said} is {end}"
        self.status = row.status
        self.contest.ended[end] += 1
        if end == "destroyed":
            self.contest.gone.append(self.made["db_name"])
        return end

    async def retire(self) -> None:
        """Brought back if it was deleted, it has all its rows; then it is destroyed."""
        row = await self._rest()
        if row.destroyed:
            return
        if row.status == "deleted":
            await self._undelete()
        await self._resume()
        await until(self._is_active, timeout=REST_SECONDS)
        assert await self._is_open(), f"{self.made['uuid']} did not come back"
        await self._change({"deletion_protection": False, "expires_at": None})
        await self._delete()
        await self._end_grace()
        await until(self._is_destroyed, timeout=REST_SECONDS)
        self.contest.gone.append(self.made["db_name"])

    def _chosen(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """One that changes what it is now, and others at random."""
        kinds = [
            self._delete,
            self._undelete,
            self._end_grace,
            self._protect,
            self._unprotect,
            self._expire,
            self._postpone,
            self._pause,
            self._resume,
        ]
        chance = self.contest.chance
        others = chance.sample(kinds, chance.choice((1, 1, 2, 3)))
        if self.status == "deleted":
            # What brings a database back and what destroys it meet only here.
            return [self._undelete, chance.choice((self._end_grace, self._delete)), self._late_step(), *others]
        first = (self._delete, self._resume) if self.status == "paused" else (self._delete, self._delete, self._expire)
        return [chance.choice(first), self._late_step(), *others]

    def _late_step(self) -> Callable[[], Awaitable[None]]:
        """A step that another worker has done meanwhile, and perhaps others after it: the row as it is now decides what
        comes of it."""
        return self.contest.chance.choice((self._end_access, self._open_access))

    async def _begin(self, move: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(self.contest.chance.uniform(0, self.apart))
        await move()

    async def _delete(self) -> None:
        _expected("delete", await self.contest.client.delete(self.made["uuid"]))

    async def _undelete(self) -> None:
        _expected("undelete", await self.contest.client.send("POST", f"{self.path}/undeletions"))

    async def _end_grace(self) -> None:
        """Moves the destruction to now, as deleting more than a tier retains does."""
        async with transaction():
            record = await records.find_for_update(self.uuid)
            moved = await fetch(
                "UPDATE databases SET destroy_at = clock_timestamp() + $2::interval"
                " WHERE uuid = $1 AND status = 'deleted' AND destroy_at > clock_timestamp() RETURNING id",
                self.uuid,
                self._in_a_moment(),
            )
            if moved:
                assert record is not None, "it was locked"
                await wake_deletion(record)
        # The step that destroys, beside that of a worker, which comes some tenths of a second later.
        await asyncio.sleep(self.contest.chance.uniform(0, self.apart))
        with contextlib.suppress(ApplicationError):
            await self.contest.steps.destroy_database(self.uuid)

    async def _end_access(self) -> None:
        with contextlib.suppress(ApplicationError):
            await self.contest.steps.revoke_access(self.uuid)

    async def _open_access(self) -> None:
        with contextlib.suppress(ApplicationError):
            await self.contest.steps.apply_access(self.uuid)

    async def _protect(self) -> None:
        await self._change({"deletion_protection": True, "expires_at": None})

    async def _unprotect(self) -> None:
        await self._change({"deletion_protection": False})

    async def _expire(self) -> None:
        """Sets a moment as near as no client can, and acts on it as a control worker does, beside the real ones."""
        await fetch(
            "UPDATE databases SET expires_at = clock_timestamp() + $2::interval, expiry_announced_at = NULL"
            " WHERE uuid = $1 AND status <> 'deleted' AND NOT deletion_protection",
            self.uuid,
            self._in_a_moment(),
        )
        await asyncio.sleep(self.contest.chance.uniform(0, self.apart))
        await service.delete_expired(DEFAULT_PLANS, self.uuid, GRACE)

    async def _postpone(self) -> None:
        later = datetime.now(UTC) + timedelta(days=1)
        await self._change({"expires_at": self.contest.chance.choice((None, later.isoformat()))})

    async def _pause(self) -> None:
        await _unless_refused(operator.pause(DEFAULT_PLANS, self.uuid))

    async def _resume(self) -> None:
        await _unless_refused(operator.resume(self.uuid))

    async def _change(self, body: dict[str, Any]) -> None:
        _expected("change", await self.contest.client.send("PATCH", self.path, body=body))

    def _in_a_moment(self) -> timedelta:
        return timedelta(seconds=self.contest.chance.uniform(0, self.apart))

    async def _row(self) -> Row:
        row = await fetch_one(Row, _ROW, self.uuid)
        assert row is not None, "rows of databases with a team are kept"
        return row

    async def _rest(self) -> Row:
        row = await until(self._at_rest, timeout=REST_SECONDS)
        assert row is not None, "it was waited for"
        return row

    async def _at_rest(self) -> Row | None:
        row = await self._row()
        return row if row.at_rest else None

    async def _is_active(self) -> bool:
        row = await self._row()
        return row.at_rest and row.status == "active"

    async def _is_destroyed(self) -> bool:
        return (await self._row()).destroyed

    async def _is_open(self) -> bool:
        """Whether its tenant gets in; then all rows have to be there, and one more is written."""
        try:
            async with session_of(self.made) as session:
                assert await session.value("SELECT count(*) FROM kept") == self.rows, "rows are lost"
                await session.run("INSERT INTO kept VALUES (1)")
        except AssertionError:
            raise
        except Exception:
            return False
        self.rows += 1
        return True

    async def _check_life(self, said: str) -> None:
        """Its events tell of deletions and undeletions in turn, and of one destruction after a deletion."""
        told = await fetch_values(str, _EVENTS, self.uuid)
        assert "database.deleted protected" not in told, f"{said} was protected"
        kinds = [event.partition(" ")[0].removeprefix("database.") for event in told]
        life = "".join(f"{kind} " for kind in kinds if kind in ("deleted", "undeleted", "destroyed"))
        assert _LIFE.fullmatch(life), f"{said}: {life}"


def _expected(move: str, answer: Answered) -> None:
    code = answer.body["error"]["code"] if "error" in answer.body else None
    assert (answer.status, code) in _ANSWERS[move], f"{move}: {answer.body}"


async def _unless_refused(move: Awaitable[Any]) -> None:
    with contextlib.suppress(DatabaseNotActive):
        await move


def patient(url: httpx.URL, api_key: str) -> httpx.AsyncClient:
    """For `PatientClient`: the API under `/api/v1`, with this key."""
    return httpx.AsyncClient(
        base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {api_key}"}, timeout=60, trust_env=False
    )
