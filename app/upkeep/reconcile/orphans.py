"""Orphans: objects on a host with our marker but without a record. How long they are only reported, and how they are
removed."""

from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec

from app.backups.restores.records import is_given_up, is_left_behind
from app.databases.hosted import find_other_host, is_name_taken, owners_of_markers
from app.engines.base import EngineAdapter, FoundTenant, Tenant
from app.store.locks import database_lock
from app.store.session import fetch_all
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.host_rules import ORPHAN, Inspection

_OPERATORS = "it stays until an operator removes it"
_NOBODYS = f"{_OPERATORS}: no record ever had its marker, which names no installation"
_FIRST_SEEN = "SELECT subject, mark, first_seen_at FROM findings WHERE host_id = $1 AND rule = $2"


class _FirstSeen(msgspec.Struct, frozen=True):
    subject: str
    mark: str
    first_seen_at: datetime


def of(inspection: Inspection) -> list[FoundTenant]:
    """The orphans that both snapshots show."""
    return [
        mismatch.found
        for mismatch in inspection.mismatches
        if mismatch.violation.rule == ORPHAN and mismatch.found is not None
    ]


async def due(inspection: Inspection, age: timedelta) -> list[FoundTenant]:
    """The orphans that runs have seen for that long."""
    since = await _first_seen(inspection)
    return [one for one in of(inspection) if one.name in since and inspection.snapshot.now - since[one.name] >= age]


async def dated(inspection: Inspection, age: timedelta | None) -> list[Violation]:
    """All violations, with what becomes of each orphan and when; `age` is None when orphans are not removed."""
    since = await _first_seen(inspection)
    owners = await _owners([one.marker for one in of(inspection)])
    violations = []
    for mismatch in inspection.mismatches:
        violation, found = mismatch.violation, mismatch.found
        if violation.rule == ORPHAN and found is not None:
            kept = await _kept(inspection, found, owners.get(found.marker))
            fate = kept or _removal(since.get(found.name), age)
            violation = msgspec.structs.replace(violation, detail=f"{violation.detail}; {fate}")
        violations.append(violation)
    return violations


async def _kept(inspection: Inspection, found: FoundTenant, owner: UUID | None) -> str | None:
    """Why no run removes the orphan; None for one that is removed in time. `owner` is the database in our records that
    has its marker."""
    host = inspection.snapshot.host
    if owner is None:
        return None if found.installation == inspection.snapshot.installation else _NOBODYS
    if await is_left_behind(owner, host.id):
        discard = f"headwater hosts evacuate {host.id} --discard"
        return f"it stays until `{discard}`: database {owner} was moved from here, and this may be its newer data"
    other = await find_other_host(owner, host.id, found.name)
    if other is None or await is_given_up(owner, host.id):
        return None
    # A server that is registered under two addresses has its databases recorded under one of them alone.
    return f"{_OPERATORS}: database {owner} has this name on {other}, which may be the same server, or lack its data"


def _removal(since: datetime | None, age: timedelta | None) -> str:
    if age is None:
        return "the removal of orphans is switched off"
    if since is None:
        return f"to be removed {age.total_seconds():.0f} s after a scheduled run first sees it"
    moments = [f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for moment in (since, since + age)]
    return f"seen since {moments[0]} UTC, to be removed after {moments[1]} UTC"


async def _first_seen(inspection: Inspection) -> dict[str, datetime]:
    """When each orphan was first seen, by name. An orphan whose marker has changed is a new one."""
    rows = await fetch_all(_FirstSeen, _FIRST_SEEN, inspection.snapshot.host.id, ORPHAN)
    marks = {one.name: one.marker for one in of(inspection)}
    return {row.subject: row.first_seen_at for row in rows if marks.get(row.subject) == row.mark}


async def in_use(inspection: Inspection, adapter: EngineAdapter) -> list[str]:
    """Names of orphans that no record ever had and that have open sessions. Our records may have lost them, so they
    don't age meanwhile. Raises `EngineError`."""
    found = of(inspection)
    known = await _owners([one.marker for one in found])
    unknown = [one.name for one in found if one.marker not in known]
    return sorted(await adapter.sessions(unknown)) if unknown else []


async def left_open(inspection: Inspection) -> list[tuple[FoundTenant, UUID]]:
    """What moved databases left on the host and still lets their tenants in, each with its database's uuid.
    `CloseRemnant` closes it, unless the host was removed first, and registered again afterwards."""
    admitting = [found for found in of(inspection) if found.admits]
    owners = await _owners([found.marker for found in admitting])
    known = [(found, owners[found.marker]) for found in admitting if found.marker in owners]
    return [(found, owner) for found, owner in known if await is_left_behind(owner, inspection.snapshot.host.id)]


async def close(inspection: Inspection, adapter: EngineAdapter, found: FoundTenant, owner: UUID) -> str:
    """Raises `EngineError`, `LockBusy`, `LockLost`."""
    async with database_lock(owner):
        if await is_name_taken(inspection.snapshot.host.id, found.name):
            return f"Left {found.name} as it is: a database lives there by now."
        await adapter.revoke_access(Tenant(name=found.name, password="", marker=found.marker))
    return f"Ended access to {found.name}, which database {owner} had left behind."


async def remove(inspection: Inspection, adapter: EngineAdapter, found: FoundTenant) -> str:
    """Removes an orphan if a database in our records left it behind, or if this installation created it and has no
    record any more. What may be somebody's only data is left alone. Raises `EngineError`, `LockBusy`, `LockLost`."""
    tenant = Tenant(name=found.name, password="", marker=found.marker)
    owner = (await _owners([found.marker])).get(found.marker)
    # Without a record there is no database id to lock, so an id is derived from the marker.
    async with database_lock(owner or uuid5(NAMESPACE_OID, found.marker)):
        kept = await _kept(inspection, found, owner)
        if kept is not None:
            return f"Left {found.name}: {kept}."
        if await is_name_taken(inspection.snapshot.host.id, found.name):
            return f"Left {found.name} as it is: a database lives there by now."
        await adapter.destroy(tenant)
    behind = f"database {owner} had left behind" if owner else "we had made and have no record of"
    return f"Removed {found.name}, which {behind}."


async def _owners(markers: list[str]) -> dict[str, UUID]:
    return await owners_of_markers(markers) if markers else {}
