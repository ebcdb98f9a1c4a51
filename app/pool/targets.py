"""How large each pool is to be: the workers' setting, or what an operator has set."""

import msgspec

from app.contracts.base import Engine
from app.core.errors import InvalidField
from app.store.session import fetch, fetch_all, transaction

MOST_MEMBERS = 10_000
"""Of one pool: more is a slip of the finger."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    engine: Engine
    region: str
    size: int


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    region: str
    engine: Engine
    size: int
    """How many there are to be."""
    ready: int
    """How many a create could claim right now."""


_WANTED = """
SELECT served.engine, served.region, coalesce(t.size, $1) AS size
FROM (SELECT DISTINCT engine, region FROM engine_hosts) served
LEFT JOIN pool_targets t ON t.engine = served.engine AND t.region = served.region AND t.by_operator
ORDER BY served.region, served.engine
"""


async def targets(default: int) -> list[Target]:
    """For every engine of every region that has a host. `default` holds where no operator has set another."""
    return await fetch_all(Target, _WANTED, default)


async def note_targets(wanted: list[Target]) -> None:
    """Writes down what the workers hold to, for `pool_status`: only they know their setting."""
    for one in wanted:
        await fetch(
            """
            INSERT INTO pool_targets AS t (region, engine, size) VALUES ($1, $2, $3)
            ON CONFLICT (region, engine) DO UPDATE SET size = excluded.size
            WHERE NOT t.by_operator AND t.size <> excluded.size
            """,
            one.region,
            one.engine,
            one.size,
        )


async def set_target(engine: Engine, region: str, size: int | None) -> None:
    """From the next refill on; None goes back to the setting. Raises `InvalidField`."""
    if size is not None and not 0 <= size <= MOST_MEMBERS:
        raise InvalidField("size", f"Expected a number from 0 to {MOST_MEMBERS}.")
    async with transaction():
        if not await fetch("SELECT 1 FROM engine_hosts WHERE engine = $1 AND region = $2 LIMIT 1", engine, region):
            raise InvalidField("region", f"No host serves {engine.value} in {region!r}.")
        if size is None:
            await fetch("UPDATE pool_targets SET by_operator = false WHERE engine = $1 AND region = $2", engine, region)
            return
        await fetch(
            """
            INSERT INTO pool_targets (region, engine, size, by_operator) VALUES ($1, $2, $3, true)
            ON CONFLICT (region, engine) DO UPDATE SET size = excluded.size, by_operator = true
            """,
            region,
            engine,
            size,
        )


async def pool_status(default: int) -> list[PoolStatus]:
    """Every pool. `default` stands in until a worker has told its own."""
    return await fetch_all(
        PoolStatus,
        """
        SELECT served.region, served.engine, coalesce(t.size, $1) AS size, count(d.id) AS ready
        FROM (SELECT DISTINCT engine, region FROM engine_hosts) served
        LEFT JOIN pool_targets t ON t.engine = served.engine AND t.region = served.region
        LEFT JOIN (databases d JOIN engine_hosts h ON h.id = d.host_id
                   AND NOT h.draining AND h.sick_until IS NULL)
               ON d.engine = served.engine AND d.region = served.region
              AND d.team_id IS NULL AND d.status = 'active' AND d.destroyed_at IS NULL
        GROUP BY served.region, served.engine, t.size ORDER BY served.region, served.engine
        """,
        default,
    )
