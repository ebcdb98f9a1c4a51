"""Changes of registered hosts: what goes there, what they may allocate, their removal."""

from datetime import datetime

import msgspec

from app.contracts.base import Engine
from app.core.errors import InvalidField, NotFound
from app.store.session import execute, fetch_exists, fetch_one, fetch_value

MOST_OVERCOMMIT = 1000
MOST_STORAGE_GB = 1_000_000


def check_overcommit(times: int) -> None:
    """Raises `InvalidField`."""
    if not 1 <= times <= MOST_OVERCOMMIT:
        raise InvalidField("connection_overcommit", f"Expected 1 to {MOST_OVERCOMMIT}.")


def check_storage(gigabytes: int) -> None:
    """Raises `InvalidField`."""
    if not 1 <= gigabytes <= MOST_STORAGE_GB:
        raise InvalidField("storage_gb", f"Expected 1 to {MOST_STORAGE_GB}.")


async def set_aside(engine: Engine, host: str, port: int) -> None:
    """Counts a host as failed until it is added again: nothing new goes there, nothing that waits there is given out,
    and the catalog doesn't show it."""
    await execute(
        "UPDATE engine_hosts SET sick_until = 'infinity', sick_reason = 'not a part of the stack that runs'"
        " WHERE engine = $1 AND host = $2 AND port = $3",
        engine,
        host,
        port,
    )


async def drain_host(host_id: int) -> None:
    """Keeps new databases off the host; those that are there stay. Raises `NotFound`."""
    await _set_draining(host_id, True)


async def undrain_host(host_id: int) -> None:
    """Lets new databases go to the host again. Raises `NotFound`."""
    await _set_draining(host_id, False)


async def change_overcommit(host_id: int, times: int) -> int:
    """Sets how often each of the host's connections may be allocated from now on; returns how often it was before. What
    is allocated stays so. Belongs in a transaction. Raises `NotFound`, `InvalidField`."""
    check_overcommit(times)
    before = await fetch_value(
        int, "SELECT connection_overcommit FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id
    )
    if before is None:
        raise NotFound("engine host")
    await execute("UPDATE engine_hosts SET connection_overcommit = $2 WHERE id = $1", host_id, times)
    return before


async def change_storage(host_id: int, gigabytes: int | None) -> int | None:
    """Sets what the host's databases may take together from now on, None for no bound; returns what it was before. What
    they take by now stays. Belongs in a transaction. Raises `NotFound`, `InvalidField`."""
    if gigabytes is not None:
        check_storage(gigabytes)
    before = await fetch_one(
        _Storage, "SELECT storage_gb FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id
    )
    if before is None:
        raise NotFound("engine host")
    await execute("UPDATE engine_hosts SET storage_gb = $2 WHERE id = $1", host_id, gigabytes)
    return before.storage_gb


class _Storage(msgspec.Struct, frozen=True):
    storage_gb: int | None


async def remove_host(host_id: int) -> None:
    """Forgets a host that carries nothing any more, and how to get in. Its row stays for the destroyed databases that
    name it; adding the host again brings it back. Belongs in a transaction. Raises `NotFound`, or `InvalidField` saying
    what it still carries."""
    # Whoever places a database there has this row locked until the database's row is written.
    if not await fetch_exists("SELECT 1 FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id):
        raise NotFound("engine host")
    carried = await fetch_one(_Carried, _CARRIED, host_id)
    assert carried is not None, "counts have always one row"
    if carried.live or carried.deleted or carried.pooled:
        raise InvalidField("host_id", _still_carries(host_id, carried))
    await execute(
        "UPDATE engine_hosts SET removed_at = now(), admin_sealed = NULL, draining = true, sick_until = 'infinity',"
        " sick_reason = 'removed' WHERE id = $1",
        host_id,
    )


class _Carried(msgspec.Struct, frozen=True, kw_only=True):
    live: int
    deleted: int
    pooled: int
    last_destroyed_at: datetime | None


_CARRIED = """
SELECT count(*) FILTER (WHERE d.team_id IS NOT NULL AND d.status <> 'deleted') AS live,
       count(*) FILTER (WHERE d.team_id IS NOT NULL AND d.status = 'deleted') AS deleted,
       count(*) FILTER (WHERE d.team_id IS NULL) AS pooled,
       max(d.destroy_at) FILTER (WHERE d.team_id IS NOT NULL AND d.status = 'deleted') AS last_destroyed_at
FROM engine_hosts h JOIN databases d ON d.host_id = h.id WHERE h.id = $1 AND d.destroyed_at IS NULL
"""


def _still_carries(host_id: int, carried: _Carried) -> str:
    parts = []
    if carried.live:
        parts.append(f"{carried.live} databases of teams")
    if carried.deleted:
        parts.append(f"{carried.deleted} deleted ones that are kept until {carried.last_destroyed_at:%Y-%m-%d %H:%M}Z")
    if carried.pooled:
        parts.append(f"{carried.pooled} of the warm pool, which go when the host is drained")
    text = f"The host still carries {', '.join(parts)}."
    if carried.deleted or carried.pooled:
        text += f" If it is lost, `headwater hosts evacuate {host_id} --discard` gives up what is due to be destroyed."
    return text


async def _set_draining(host_id: int, draining: bool) -> None:
    changed = await execute(
        "UPDATE engine_hosts SET draining = $2 WHERE id = $1 AND removed_at IS NULL", host_id, draining
    )
    if not changed:
        raise NotFound("engine host")
