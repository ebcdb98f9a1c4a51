"""Random histories of databases, by the service's own changes of state, on a clock that the test moves."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from app.contracts.base import DatabaseStatus, PauseReason
from app.databases import access, records, states
from app.databases.moving import move_lost
from app.databases.records import DatabaseRecord
from app.engines.base import Usage
from app.provisioning import lifecycle
from app.quotas import usage
from app.quotas.plans import DEFAULT_PLANS
from app.quotas.usage import Sample
from app.store.session import execute, fetch, transaction
from app.usage import closing
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.lone_pool import LonePool
from tests.support.moves import make_active
from tests.support.store import execute_at
from tests.usage.ledger_model import PERIOD, LedgerModel


def moment_of(text: str) -> int:
    """In UTC, as seconds since the epoch."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


START = moment_of("2027-01-31T21:17:05")
KEEP = timedelta(days=4000)
_SIZES = (0, 1, 7_340_033, 2**40 + 1, 2**53 + 3)
_SPANS = (0, 1, 59, 61, 600, PERIOD - 1, PERIOD, 3 * PERIOD + 7, 86_400 * 31)


class RolledBack(Exception):
    """What the change's transaction ends with."""


_CLOCK = """
CREATE TABLE test_clock (moment timestamptz);
INSERT INTO test_clock VALUES (now());
GRANT SELECT, UPDATE ON test_clock TO PUBLIC;
CREATE OR REPLACE FUNCTION usage_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT moment FROM test_clock $$
"""


async def begin(owner_dsn: str, moment: int) -> None:
    """The meters' clock is `set_clock`'s from now on, in the database of that owner, as if our tables had been made at
    that moment."""
    await execute_at(owner_dsn, _CLOCK)
    await set_clock(moment)
    await execute("UPDATE usage_clock SET closed_through = usage_period_of(usage_now(), period_seconds)")


async def set_clock(moment: int) -> None:
    await execute("UPDATE test_clock SET moment = to_timestamp($1)", moment)


class History:
    def __init__(self, pool: LonePool, callers: list[Caller], host: int, other_host: int, dice: random.Random) -> None:
        self._pool, self._callers, self._hosts, self._dice = pool, callers, (host, other_host), dice
        self.model = LedgerModel(START)
        self.databases: list[UUID] = []
        self._measured_at: dict[UUID, int] = {}
        self.rolled_back = 0

    async def create(self) -> None:
        """From the pool, where it had a size already that was nobody's, or made for the team."""
        if len(self.databases) >= 8:
            return
        caller = self._dice.choice(self._callers)
        if self._dice.random() < 0.5:
            [member] = await self._pool.add_members(1, self._hosts[0])
            size, measured_at = await self._measure([member], self._dice.choice(_SIZES), self.model.now), self.model.now
            await self.tick()
            uuid = UUID(data_of(await caller.create(), 201)["uuid"])
            assert uuid == member
            self.model.change(uuid, running=True, storage=size)
            self._measured_at[uuid] = measured_at
        else:
            made = data_of(await caller.create(), 202)["uuid"]
            await self.tick()
            await make_active(made)
            uuid = UUID(made)
            self.model.change(uuid, running=True)
        self.databases.append(uuid)

    async def tick(self) -> None:
        self.model.now += self._dice.choice(_SPANS)
        await set_clock(self.model.now)

    async def step(self) -> None:
        dice = self._dice
        act = dice.choices(
            (self.tick, self._sizes, self._state, self._backup, self._rename, self.close, self.create),
            weights=(6, 6, 8, 3, 1, 3, 2),
        )[0]
        await act()

    async def close(self) -> None:
        """Two processes at once, of which one may die anywhere."""
        one = asyncio.create_task(closing.close(PERIOD, KEEP))
        other = asyncio.create_task(closing.close(PERIOD, KEEP))
        for _ in range(self._dice.choice((0, 1, 3, 10, 30, 100))):
            await asyncio.sleep(0)
        one.cancel()
        await asyncio.gather(one, other, return_exceptions=True)
        other.result()

    async def _measure(self, databases: list[UUID], octets: int, at: int) -> int:
        rows = await fetch("SELECT id FROM databases WHERE uuid = any($1::uuid[])", databases)
        moment = datetime.fromtimestamp(at, UTC)
        await usage.record_use([Sample(database_id=row["id"], use=0) for row in rows], moment, longest_gap=0)
        await usage.record_storage({row["id"]: Usage(storage_bytes=octets, connections=0) for row in rows}, moment)
        return octets

    async def _sizes(self) -> None:
        """Some at once; late, so that a newer measurement is there, or twice."""
        some = [one for one in self.databases if self._dice.random() < 0.6]
        octets, late = self._dice.choice(_SIZES), self._dice.random() < 0.2
        at = self.model.now - (1 if late else 0)
        for database in some:
            await self._size(database, octets, at)

    async def _size(self, database: UUID, octets: int, at: int) -> None:
        for _ in range(self._dice.choice((1, 2))):
            await self._measure([database], octets, at)
        record = await _record(database)
        never = record.status is DatabaseStatus.DELETED and database not in self._measured_at
        # Nobody measures what is not whole.
        if record.restoring_at is None and at > self._measured_at.get(database, 0) and not never:
            self._measured_at[database] = at
            self.model.change(database, storage=0 if record.destroyed_at else octets)

    async def _rename(self) -> None:
        for database in self.databases:
            await execute("UPDATE databases SET name = 'renamed', updated_at = now() WHERE uuid = $1", database)

    async def _backup(self) -> None:
        if not self.databases:
            return
        database = self._dice.choice(self.databases)
        held = self.model.rates(database).backups
        if held and self._dice.random() < 0.5:
            await execute(
                "UPDATE backups SET status = 'expired' WHERE database_uuid = $1 AND status = 'completed'", database
            )
            self.model.change(database, backups=0)
            return
        octets = self._dice.choice(_SIZES)
        uuid = uuid4()
        await execute(
            "INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan,"
            " quotas, kind, priority, status)"
            " SELECT $2, team_id, id, uuid, name, engine, region, plan, '{}', 'manual', 3, 'running' FROM databases"
            " WHERE uuid = $1",
            database,
            uuid,
        )
        await execute("UPDATE backups SET status = 'completed', stored_bytes = $2 WHERE uuid = $1", uuid, octets)
        self.model.change(database, backups=held + octets)

    async def _state(self) -> None:
        """A change that fits the database's state, or the same in a transaction that comes to nothing."""
        if not self.databases:
            return
        database = self._dice.choice(self.databases)
        record = await _record(database)
        change, rates = self._dice.choice(self._changes(record))
        if self._dice.random() < 0.25:
            self.rolled_back += 1
            try:
                async with transaction():
                    await change(record)
                    raise RolledBack
            except RolledBack:
                return
        async with transaction():
            await change(record)
        self.model.change(database, **rates)

    def _changes(
        self, record: DatabaseRecord
    ) -> list[tuple[Callable[[DatabaseRecord], Awaitable[object]], dict[str, int | bool]]]:
        if record.destroyed_at is not None:
            return [(_nothing, {})]
        if record.status is DatabaseStatus.DELETED:
            return [(_undelete, {}), (_destroy, {"storage": 0})]
        if record.status is DatabaseStatus.PAUSED:
            return [(_resume, {"running": True}), (_delete, {}), (self._move, {})]
        return [
            (_pause, {"running": False}),
            (_freeze, {}),
            (_delete, {"running": False}),
            (_close, {"running": False}),
            (self._move, {"running": False}),
        ]

    async def _move(self, record: DatabaseRecord) -> None:
        """From a host that was lost."""
        await move_lost(record, self._hosts[1])


async def _record(database: UUID) -> DatabaseRecord:
    record = await records.find(database)
    assert record is not None
    return record


async def _nothing(_: DatabaseRecord) -> None: ...


async def _pause(record: DatabaseRecord) -> None:
    await access.pause(DEFAULT_PLANS, record, PauseReason.TEAM)


async def _freeze(record: DatabaseRecord) -> None:
    await access.freeze(record)


async def _close(record: DatabaseRecord) -> None:
    """For a restore in place."""
    await access.close(DEFAULT_PLANS, record)


async def _resume(record: DatabaseRecord) -> None:
    """To the end, whatever it was paused for."""
    await access.resume(record)
    await access.reopen(record)
    now = await _record(record.uuid)
    await access.record_applied(DEFAULT_PLANS, record.uuid, now.access_revision)


async def _delete(record: DatabaseRecord) -> None:
    await lifecycle.note_deleted(DEFAULT_PLANS, record, grace=timedelta(days=1))


async def _undelete(record: DatabaseRecord) -> None:
    assert await access.bring_back(record, relayed=True) is not None


async def _destroy(record: DatabaseRecord) -> None:
    assert await states.record_destroyed(record.uuid)
