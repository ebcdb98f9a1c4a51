"""Giving a database of the pool to a team, in the transaction of its create. The engine is not asked."""

from functools import cache
from typing import Literal, TypeVar

import msgspec
from prometheus_client import Counter, Histogram

from app.contracts.base import Engine
from app.core.metrics.counters import POOL_CLAIM_SECONDS, POOL_CLAIMS
from app.hosts.loads import rooms
from app.quotas.plans import Quotas
from app.store.session import fetch, fetch_one

Row = TypeVar("Row", bound=msgspec.Struct)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a create asks for."""

    engine: Engine
    region: str | None
    name: str
    plan: str
    quotas: Quotas
    connections: int
    """In force: the plan's with the quotas over it."""
    team_id: int
    user_id: int


# Of `databases m` and `engine_hosts h`, with engine and region as the first two parameters. A host that failed is
# placed on again after a while, to find out. A claim asks no host, so what waits there is given out once it answered.
READY = """
    m.team_id IS NULL AND m.destroyed_at IS NULL AND m.status = 'active'
    AND m.engine = $1 AND ($2::text IS NULL OR m.region = $2)
    AND NOT h.draining AND h.sick_until IS NULL
"""

# The oldest first, so that few get too old. By position, which only the index of the pools sorts by: by id, a plan may
# walk the primary key through all that was ever claimed. A member that another create is about to take is passed over,
# without waiting for what becomes of it.
CLAIM = f"""
WITH chosen AS (
    SELECT m.id FROM databases m JOIN engine_hosts h ON h.id = m.host_id
    WHERE {READY}
      AND (m.connections >= $10 OR EXISTS (
          SELECT FROM unnest($11::bigint[], $12::bigint[]) AS r (host_id, room)
          WHERE r.host_id = m.host_id AND m.connections + r.room >= $10))
    ORDER BY m.position LIMIT 1 FOR NO KEY UPDATE OF m SKIP LOCKED
)
UPDATE databases d SET
    team_id = $3, created_by_id = $4, name = $5, plan = $6, storage_hard_limit_gb = $7, connection_hard_limit = $8,
    warning_threshold_pct = $9, connections = $10, limits_revision = limits_revision + (connections <> $10)::int,
    position = DEFAULT,
    created_at = now(), updated_at = now(), provisioned_at = now()
FROM chosen, engine_hosts h, teams t WHERE d.id = chosen.id AND h.id = d.host_id AND t.id = $3
RETURNING d.*, t.name AS team_name, h.host, h.port
"""  # noqa: S608 - our own words


async def claim(wish: Wish, kind: type[Row]) -> Row | None:
    """A ready member that becomes the team's, on a host with room for its connections; None when there is none. Where
    the engine has to be told of another number of them, `limits_revision` is ahead of `limits_applied`. `kind` has the
    columns of `databases` that it wants, and may have `team_name`, `host` and `port`."""
    claimed = await _claim(wish, kind, {})
    if claimed is None and await _is_ready(wish):
        claimed = await _claim(wish, kind, await rooms(wish.engine, wish.region))
    return claimed


def note_claim(engine: Engine, region: str, outcome: Literal["hit", "miss"], seconds: float) -> None:
    """For the metrics: how long the pool was asked, for a create that went to that region."""
    claims, durations = _series(engine, region, outcome)
    claims.inc()
    durations.observe(seconds)


@cache
def _series(engine: Engine, region: str, outcome: str) -> tuple[Counter, Histogram]:
    """Looking labels up costs more than counting does."""
    return POOL_CLAIMS.labels(engine.value, region, outcome), POOL_CLAIM_SECONDS.labels(engine.value, outcome)


async def _claim(wish: Wish, kind: type[Row], room: dict[int, int]) -> Row | None:
    return await fetch_one(
        kind,
        CLAIM,
        wish.engine,
        wish.region,
        wish.team_id,
        wish.user_id,
        wish.name,
        wish.plan,
        wish.quotas.storage_hard_limit_gb,
        wish.quotas.connection_hard_limit,
        wish.quotas.warning_threshold_pct,
        wish.connections,
        list(room),
        list(room.values()),
    )


async def _is_ready(wish: Wish) -> bool:
    """Whether it is worth to look how much room the hosts have for one that promises more than it was made with."""
    return bool(
        await fetch(
            """
            SELECT 1 FROM databases WHERE team_id IS NULL AND destroyed_at IS NULL AND status = 'active'
              AND engine = $1 AND ($2::text IS NULL OR region = $2) AND connections < $3 LIMIT 1
            """,
            wish.engine,
            wish.region,
            wish.connections,
        )
    )
