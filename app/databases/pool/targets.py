"""How large each pool is to be: the workers' setting, or what an operator has set."""

import msgspec

from app.contracts.base import Engine
from app.core.errors import InvalidField
from app.hosts.records import is_served
from app.store.session import execute, fetch_all, transaction

MOST_MEMBERS = 10_000
"""The most members of one pool: more is a slip of the finger."""


class PoolSize(msgspec.Struct, frozen=True, kw_only=True):
    engine: Engine
    region: str
    size: int


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    region: str
    engine: Engine
    size: int
    """How many members there are to be."""
    ready: int
    """How many a create could claim right now."""


class PoolFilling(PoolStatus, frozen=True, kw_only=True):
    """A pool, and what fills it."""

    chosen: bool
    """An operator has set the size, in place of the setting."""
    coming: int
    """Members that are being made."""
    open_hosts: int
    """Hosts that could take more."""


_SERVED = "(SELECT DISTINCT engine, region FROM engine_hosts WHERE removed_at IS NULL) served"
_WANTED = f"""
SELECT served.engine, served.region, coalesce(t.size, $1) AS size
FROM {_SERVED} LEFT JOIN pool_targets t ON t.engine = served.engine AND t.region = served.region
ORDER BY served.region, served.engine
"""  # noqa: S608 - our own words


async def targets(default: int) -> list[PoolSize]:
    """The sizes of the pools: one for every engine in every region that has a host of it. `default` is the size where
    no operator has set another."""
    return await fetch_all(PoolSize, _WANTED, default)


async def note_setting(pools: list[PoolSize], setting: int) -> None:
    """Records the workers' own setting for these pools, for `pool_status`: only they know it."""
    for one in pools:
        await execute(
            """
            INSERT INTO pool_targets AS t (region, engine, setting) VALUES ($1, $2, $3)
            ON CONFLICT (region, engine) DO UPDATE SET setting = excluded.setting
            WHERE t.setting IS DISTINCT FROM excluded.setting
            """,
            one.region,
            one.engine,
            setting,
        )


async def set_target(engine: Engine, region: str, size: int | None) -> None:
    """Sets the size of a pool from the next refill on; None goes back to the setting. Raises `InvalidField`."""
    if size is not None and not 0 <= size <= MOST_MEMBERS:
        raise InvalidField("size", f"Expected a number from 0 to {MOST_MEMBERS}.")
    async with transaction():
        if not await is_served(engine, region):
            raise InvalidField("region", f"No host serves {engine.value} in {region!r}.")
        await execute(
            """
            INSERT INTO pool_targets (region, engine, size) VALUES ($1, $2, $3)
            ON CONFLICT (region, engine) DO UPDATE SET size = excluded.size
            """,
            region,
            engine,
            size,
        )


_STATUS = f"""
SELECT served.region, served.engine, coalesce(t.size, t.setting, $1) AS size, t.size IS NOT NULL AS chosen,
       count(d.id) FILTER (WHERE d.status = 'active') AS ready,
       count(d.id) FILTER (WHERE d.status = 'provisioning') AS coming,
       (SELECT count(*) FROM engine_hosts h WHERE h.engine = served.engine AND h.region = served.region
        AND h.removed_at IS NULL AND NOT h.draining AND coalesce(h.sick_until <= now(), true)) AS open_hosts
FROM {_SERVED}
LEFT JOIN pool_targets t ON t.engine = served.engine AND t.region = served.region
LEFT JOIN (databases d JOIN engine_hosts h ON h.id = d.host_id AND NOT h.draining AND h.sick_until IS NULL)
       ON d.engine = served.engine AND d.region = served.region
      AND d.team_id IS NULL AND d.status IN ('active', 'provisioning') AND d.destroyed_at IS NULL
GROUP BY served.region, served.engine, t.size, t.setting ORDER BY served.region, served.engine
"""  # noqa: S608 - our own words


async def pool_status(default: int) -> list[PoolStatus]:
    """Every pool. `default` is used until a worker has recorded its setting."""
    return await fetch_all(PoolStatus, _STATUS, default)


async def pool_filling(default: int) -> list[PoolFilling]:
    """The same, with what fills each."""
    return await fetch_all(PoolFilling, _STATUS, default)
