"""Measuring the databases of a region, host by host, and acting on what was found."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from random import SystemRandom

import msgspec
import structlog

from app.audit.actions import Action
from app.audit.events import append
from app.contracts.quotas import RegionMeasurement
from app.core.metrics import counters
from app.databases import access, records
from app.databases.hosted import MeasurableDatabase, measurable_on
from app.databases.views import append_event
from app.engines.base import EngineAdapter, EngineError, HostUnavailable, SessionLimits, SessionsEnded
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.loads import mark_sick
from app.hosts.records import Host, registered_hosts
from app.outbox.event_types import EventType
from app.quotas import own_logins, usage
from app.quotas.decision import QuotaActions, QuotaState, decide
from app.quotas.measuring import measure_storage
from app.quotas.plans import Plans
from app.quotas.usage import Sample
from app.store.session import transaction
from app.usage.metrics import sampling
from app.usage.metrics.sampling import Sampled

HOST_SECONDS = 45.0
"""How long one host may take, so that a host that hangs costs the others nothing."""
SHARING_SECONDS = 8.0
"""How much of that may go to ending the sessions that hold what belongs to all."""
SESSION_LISTS = 4
"""How often the sessions are listed in one measurement. A single list would count a tenant that comes and goes wholly
or not at all."""
SESSION_LIST_SECONDS = 2.0
"""The time over which the sessions are listed, each time at a random moment of its share, so that no tenant can avoid
them."""

_RANDOM = SystemRandom()
log = structlog.get_logger(__name__)


async def measure_region(
    plans: Plans,
    adapters: Adapters,
    region: str,
    at: datetime,
    *,
    longest_gap: float,
    overdue: float,
    sessions: SessionLimits | None = None,
) -> RegionMeasurement:
    """Measures all hosts of the region side by side. `at` is the moment that the samples count as taken at; `overdue`
    are the seconds that no statement of a question takes unless its process died; `sessions` is what tenants' sessions
    may take."""
    hosts = await registered_hosts(region)
    await sampling.prepare(at)
    counts: Counter[str] = Counter()
    unreachable: list[str] = []

    async def one(host: Host) -> None:
        databases = await measurable_on(host.id)
        try:
            async with asyncio.timeout(HOST_SECONDS):
                adapter = await adapters.of_host(host.id)
                counts.update(await _end_hoarding(adapter, host.address, databases, sessions or SessionLimits()))
                counts.update(await _end_overdue(adapter, host, overdue))
                counts["databases"] += await _measure_host(adapter, host, databases, at, longest_gap)
        except HostRemoved:
            return
        except (EngineError, TimeoutError) as error:
            log.warning("host_not_measured", host=host.address, reason=str(error) or "no answer in time")
            unreachable.append(host.address)
            if isinstance(error, HostUnavailable):
                await mark_sick(host.id, str(error))
        counts.update(await _enforce(plans, databases))

    await asyncio.gather(*map(one, hosts))
    await sampling.roll_up(at)
    return RegionMeasurement(
        databases=counts.pop("databases", 0),
        moves=dict(sorted(counts.items())),
        unreachable=tuple(sorted(unreachable)),
    )


async def _end_hoarding(
    adapter: EngineAdapter, address: str, databases: Sequence[MeasurableDatabase], limits: SessionLimits
) -> Counter[str]:
    """Ends the sessions that take what belongs to all, and counts how much of that is used up. No fault in this keeps
    anything from being measured, except a host that isn't there."""
    ended: list[SessionsEnded] = []
    try:
        async with asyncio.timeout(SHARING_SECONDS):
            ended = await adapter.end_excessive_sessions([one.engine_name for one in databases], limits)
            for resource in await adapter.shared_resources():
                counters.set_shared_resource(adapter.engine, address, resource.name, resource.used, resource.capacity)
    except HostUnavailable:
        raise
    except (EngineError, TimeoutError) as error:
        log.warning("sharing_not_watched", host=address, reason=str(error) or "no answer in time")
    for one in ended:
        counters.SESSIONS_ENDED.labels(adapter.engine, one.reason).inc()
        log.warning("session_ended", host=address, tenant=one.tenant, reason=one.reason)
    return Counter(f"ended_{one.reason}" for one in ended)


async def _end_overdue(adapter: EngineAdapter, host: Host, overdue: float) -> Counter[str]:
    ended = await adapter.end_overdue(overdue)
    if ended:
        log.warning("overdue_statements_ended", host=host.address, statements=ended)
    return Counter({"ended_overdue": ended} if ended else {})


async def _measure_host(
    adapter: EngineAdapter, host: Host, databases: Sequence[MeasurableDatabase], at: datetime, longest_gap: float
) -> int:
    """Records the use of all databases, then the storage of those whose turn it is; returns how many these were. What
    the server counts of all is read in between, and kept whatever comes of the storage."""
    if not databases:
        return 0
    sessions = await _use(adapter, databases, at, longest_gap)
    counted = await sampling.look(adapter, host.address, [one.engine_name for one in databases if one.running])
    try:
        return await measure_storage(adapter, [one.id for one in databases], at)
    finally:
        storage = await usage.storage_measured_at([one.id for one in databases], at)
        sampled = [
            Sampled(
                database_id=one.id,
                name=one.engine_name,
                running=one.running,
                connections=sessions[one.engine_name],
                storage_bytes=storage.get(one.id),
            )
            for one in databases
        ]
        await sampling.keep(host.id, sampled, counted, at, longest_gap=longest_gap)


async def _enforce(plans: Plans, databases: Sequence[MeasurableDatabase]) -> Counter[str]:
    """Acts on what is recorded of the databases, also where the run went no further."""
    found = await usage.standings(plans, [one.id for one in databases])
    counts: Counter[str] = Counter()
    for one in databases:
        standing = found.get(one.id)
        if standing is not None and _changes(standing, settled=one.settled):
            counts.update(await _act(plans, one))
    return counts


async def _use(
    adapter: EngineAdapter, databases: Sequence[MeasurableDatabase], at: datetime, longest_gap: float
) -> Counter[str]:
    """Records which databases were in use; returns the most sessions that were seen open at once, by name."""
    since = await own_logins.moment()
    seen, most = await _count_sessions(adapter, [one.engine_name for one in databases])
    ours = await own_logins.among([one.id for one in databases], since)
    samples = [
        # What may have been our own login is nobody's use.
        Sample(database_id=one.id, use=0.0 if one.id in ours else seen[one.engine_name] / SESSION_LISTS)
        for one in databases
    ]
    await usage.record_use(samples, at, longest_gap=longest_gap)
    return most


async def _count_sessions(adapter: EngineAdapter, names: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """How many of the lists had a session of each database, and how many sessions of it the longest list had."""
    seen: Counter[str] = Counter()
    most: Counter[str] = Counter()
    share = SESSION_LIST_SECONDS / SESSION_LISTS
    for _ in range(SESSION_LISTS):
        moment = _RANDOM.uniform(0, share)
        await asyncio.sleep(moment)
        found = await adapter.sessions(names)
        seen.update(found.keys())
        most |= Counter({name: len(sessions) for name, sessions in found.items()})
        await asyncio.sleep(share - moment)
    return seen, most


async def _act(plans: Plans, one: MeasurableDatabase) -> Counter[str]:
    """Does what the measurement asks for, in one transaction with what is remembered of it."""
    async with transaction():
        record = await records.find_for_update(one.uuid)
        standing = (await usage.standings(plans, [one.id], lock=True)).get(one.id)
        if record is None or standing is None or not _changes(standing, settled=one.settled):
            return Counter()
        verdict = decide(_as_seen(standing, settled=one.settled))
        if verdict.warn:
            await append_event(plans, EventType.DATABASE_QUOTA_WARNING, one.uuid)
        if verdict.freeze:
            await access.freeze(record)
        if verdict.thaw:
            await access.thaw(record)
        if verdict.pause is not None:
            await access.pause(plans, record, verdict.pause)
        if verdict.resume:
            await access.resume(record)
        await usage.remember(one.id, verdict)
        for action in _actions(verdict):
            await append(action, ("database", one.uuid), team_id=record.team_id, changes=_because(verdict))
    counts = Counter(_moves(verdict))
    if counts:
        log.info("quota_enforced", database=str(one.uuid), moves=sorted(counts))
    return counts


def _actions(verdict: QuotaActions) -> list[Action]:
    """The actions on the database's access that the verdict stands for."""
    done = {
        Action.DATABASE_FREEZE: verdict.freeze,
        Action.DATABASE_UNFREEZE: verdict.thaw,
        Action.DATABASE_PAUSE: verdict.pause is not None,
        Action.DATABASE_RESUME: verdict.resume,
    }
    return [action for action, is_done in done.items() if is_done]


def _because(verdict: QuotaActions) -> dict[str, tuple[None, str]] | None:
    return None if verdict.pause is None else {"paused_reason": (None, verdict.pause.value)}


def _as_seen(standing: QuotaState, *, settled: bool) -> QuotaState:
    """The state as the measurement saw it: access that was settled only after it began says nothing of what it
    found."""
    return msgspec.structs.replace(standing, access_settled=standing.access_settled and settled)


def _changes(standing: QuotaState, *, settled: bool) -> bool:
    verdict = decide(_as_seen(standing, settled=settled))
    remembered = (standing.warned, standing.frozen_bytes, standing.growing)
    return bool(_moves(verdict)) or remembered != (verdict.warned, verdict.frozen_bytes, verdict.growing)


def _moves(verdict: QuotaActions) -> list[str]:
    moves = {"warned": verdict.warn, "frozen": verdict.freeze, "thawed": verdict.thaw, "resumed": verdict.resume}
    paused = [] if verdict.pause is None else [f"paused_{verdict.pause.value}"]
    return [name for name, made in moves.items() if made] + paused
