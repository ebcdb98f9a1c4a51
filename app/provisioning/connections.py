"""Sharing out the connections of a host that is short of them.

A look counts the open sessions. While the host is short, the databases that have more than their share get no more, by
limits on the engine that are lower than their own; where that is not enough, sessions of theirs end. The rows of what
is held say what to give back, whoever looks next.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

import structlog

from app.audit.actions import Action
from app.audit.events import append
from app.core.metrics import counters
from app.credentials import users
from app.databases import records
from app.databases.views import append_event
from app.engines.base import EngineAdapter, EngineError, HeldLimits
from app.engines.hosts import sessions_for_tenants
from app.hosts import connections as host_connections
from app.hosts.adapters import Adapters
from app.hosts.connections import HostWatch
from app.hosts.records import Host
from app.outbox.event_types import EventType
from app.quotas import holds
from app.quotas.connection_shares import CALM_SECONDS, FULL, HIGH, LOW, Sharer, allotments, floor_of
from app.quotas.holds import HeldDatabase
from app.quotas.plans import Plans
from app.store.locks import LockBusy, LockLost, database_lock
from app.store.session import transaction

_NEAR = 0.5
"""The share of a host's connections from which on it is looked at more often."""
_AGAIN = timedelta(seconds=60)
"""The time after which the engine's limits are set again: a change of limits or users may have written theirs
meanwhile."""
_MOST = 500
"""The most databases whose limits are set in one look; those with most sessions come first."""
_HOLDING_SECONDS = 8.0
"""How long one look sets limits. Its other half is for ending sessions, whatever keeps limits from being set."""
_CHANGE_SECONDS, _PATIENCE_SECONDS = 3.0, 0.5
"""How long a change of one database's limits may take, and how long its lock is waited for, so that databases that are
being changed delay no other; the next look tries again."""

log = structlog.get_logger(__name__)


async def look_after(plans: Plans, adapters: Adapters, host: Host, seconds: float) -> bool:
    """Counts the host's sessions and does what follows, unless somebody did so within `seconds`. Returns whether the
    host is to be looked at more often. Raises `EngineError`."""
    watch = await host_connections.take_turn(host.id, seconds)
    if watch is None:
        return False
    adapter = await adapters.of_host(host.id)
    counted = await adapter.session_counts()
    limit = max(1, min(watch.connection_capacity, sessions_for_tenants(counted.limit)))
    short_since, calm_since = _judge(watch, counted.open, limit)
    if (counted.open, limit, short_since, calm_since) != (
        watch.open,
        watch.admitted,
        watch.short_since,
        watch.calm_since,
    ):
        await host_connections.record(host.id, counted.open, limit, short_since, calm_since)
    if short_since is None:
        if await holds.any_on_host(host.id):
            await holds.delete_destroyed(host.id)
            await _release(plans, adapter, await holds.on_host(host.id, [], _AGAIN))
        return counted.open >= _NEAR * limit
    databases = await holds.on_host(host.id, list(counted.by_name), _AGAIN)
    asking = [_asking(one, counted.by_name, watch.connection_overcommit) for one in databases]
    at_most = allotments(asking, int(HIGH * limit))
    await _hold(plans, adapter, databases, at_most, counted.by_name)
    if counted.open > FULL * limit:
        await _end_surplus(adapter, databases, at_most, counted.by_name)
    return True


def _judge(watch: HostWatch, open_sessions: int, limit: int) -> tuple[datetime | None, datetime | None]:
    """Since when the host is short of connections, and since when it is about to be so no more."""
    if open_sessions > HIGH * limit:
        return watch.short_since or watch.now, None
    if watch.short_since is None or open_sessions >= LOW * limit:
        return watch.short_since, None
    calm_since = watch.calm_since or watch.now
    if watch.now - calm_since >= timedelta(seconds=CALM_SECONDS):
        return None, None
    return watch.short_since, calm_since


def _asking(one: HeldDatabase, sessions: Mapping[str, int], overcommit: int) -> Sharer:
    return Sharer(
        id=one.id,
        team_id=one.team_id,
        limit=one.connections,
        floor=floor_of(one.connections, overcommit),
        sessions=sessions.get(one.engine_name, 0),
        at_most=one.at_most,
    )


async def _hold(
    plans: Plans,
    adapter: EngineAdapter,
    databases: Sequence[HeldDatabase],
    at_most: Mapping[int, int],
    sessions: Mapping[str, int],
) -> None:
    """Sets the shares as limits on the engine. The rows are written first, with the events of databases that were not
    held before."""
    due = [one for one in databases if one.id in at_most and (at_most[one.id] != one.at_most or not one.applied)]
    # Those whose limits could not be set come after those that weren't tried yet.
    due = sorted(due, key=lambda one: (at_most[one.id] == one.at_most, -sessions.get(one.engine_name, 0)))[:_MOST]
    changed = {one.id: at_most[one.id] for one in due if at_most[one.id] != one.at_most}
    if changed:
        async with transaction():
            new = set(await holds.write(changed))
            for one in due:
                if one.id in new:
                    kind = EventType.DATABASE_CONNECTIONS_LIMITED
                    await _append_events(plans, one.uuid, one.team_id, kind, changed[one.id])
    deadline = monotonic() + _HOLDING_SECONDS
    for one in due:
        if monotonic() > deadline:
            break
        try:
            await _hold_one(adapter, one.uuid, at_most[one.id])
        except (EngineError, LockBusy, LockLost, TimeoutError) as error:
            reason = str(error) or "it is being changed"
            log.warning("connections_not_held", database=str(one.uuid), reason=reason)


async def _hold_one(adapter: EngineAdapter, database: UUID, at_most: int) -> None:
    """Sets one database's limits, unless its row says otherwise by now: another process may have looked since, and
    given back. Raises `EngineError`, `LockBusy`, `LockLost`, `TimeoutError`."""
    async with _changing(database):
        record = await records.find(database)
        if record is not None and await holds.find(record.id) == at_most:
            await adapter.hold(record.engine_name, await _limits(record.id, record.connections, at_most))
            await holds.note_applied(record.id, at_most)


@asynccontextmanager
async def _changing(database: UUID) -> AsyncIterator[None]:
    """Holds the database's lock, for a short time. Raises `LockBusy`, `LockLost`, `TimeoutError`."""
    # What its limit is may change until the engine has it.
    async with asyncio.timeout(_PATIENCE_SECONDS) as limit, database_lock(database):
        limit.reschedule(asyncio.get_running_loop().time() + _CHANGE_SECONDS)
        yield


async def _release(plans: Plans, adapter: EngineAdapter, held: Sequence[HeldDatabase]) -> None:
    for one in held:
        if failure := await give_back(plans, adapter, one.uuid):
            log.warning("connections_not_released", database=str(one.uuid), reason=failure)


async def _limits(database_id: int, total: int, at_most: int | None) -> HeldLimits:
    of_users = {user.login_name: user.connection_limit for user in await users.list_of(database_id)}
    return HeldLimits(total=total, users=of_users, at_most=at_most)


async def _end_surplus(
    adapter: EngineAdapter, databases: Sequence[HeldDatabase], at_most: Mapping[int, int], sessions: Mapping[str, int]
) -> None:
    """Ends sessions of those databases alone that have more than their share; none has less than its floor
    afterwards."""
    for one in databases:
        keep = at_most.get(one.id, one.connections)
        # Those that are counted here may be the service's own, or have ended meanwhile.
        if sessions.get(one.engine_name, 0) > keep and (ended := await adapter.end_surplus(one.engine_name, keep)):
            counters.SESSIONS_ENDED.labels(adapter.engine, "connections").inc(ended)
            log.warning("sessions_ended", database=str(one.uuid), sessions=ended, reason="connections")


async def _append_events(plans: Plans, database: UUID, team_id: int | None, kind: EventType, connections: int) -> None:
    limited = kind is EventType.DATABASE_CONNECTIONS_LIMITED
    action = Action.DATABASE_LIMIT_CONNECTIONS if limited else Action.DATABASE_RESTORE_CONNECTIONS
    await append(action, ("database", database), team_id=team_id, changes={"connections": (None, connections)})
    await append_event(plans, kind, database)


async def find_unrecorded(adapter: EngineAdapter, host: Host) -> list[UUID]:
    """The databases that the host holds and no row does, as after our own database came back from a backup. Raises
    `EngineError`."""
    names = await adapter.held()
    found = {one.engine_name: one.uuid for one in await holds.on_host(host.id, names, _AGAIN) if one.at_most is None}
    unrecorded = [name for name in names if name in found]
    if not unrecorded:
        return []
    # A release gives back before its row goes.
    again = set(await adapter.held())
    return [found[name] for name in unrecorded if name in again]


async def give_back(plans: Plans, adapter: EngineAdapter, database: UUID) -> str | None:
    """Lets a database have all of its limit again. Returns why it could not."""
    try:
        async with _changing(database):
            record = await records.find(database)
            if record is None:
                return None
            if record.destroyed_at is None:
                await adapter.hold(record.engine_name, await _limits(record.id, record.connections, None))
            async with transaction():
                if await holds.delete(record.id):
                    await _append_events(
                        plans, record.uuid, record.team_id, EventType.DATABASE_CONNECTIONS_RESTORED, record.connections
                    )
    except (EngineError, LockBusy, LockLost, TimeoutError) as error:
        return str(error) or "it is being changed"
    return None
