"""The deleted databases of a team, whose data is retained for a while, within the limits of its tier."""

from uuid import UUID

import msgspec

from app.auth.teams import TeamRecord, get_team
from app.core.errors import DeletionsPending
from app.databases import records
from app.databases.deletion import wake_deletion
from app.quotas.plans import Plans
from app.store.session import fetch_all, fetch_values

_GIB = 2**30

# A deleted database of the team that still has something on its host.
_RETAINED = "d.team_id = $1 AND d.status = 'deleted' AND d.destroyed_at IS NULL"

# The newest first: place and sum are those of the database and all newer ones. One that never became active was deleted
# without a grace period, so it takes no other's place.
_END_OLDEST = f"""
WITH retained AS (
    SELECT d.id, row_number() OVER newest AS place, sum(coalesce(u.storage_bytes, 0)) OVER newest AS bytes
    FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id
    WHERE {_RETAINED} AND d.destroy_at > clock_timestamp()
    WINDOW newest AS (ORDER BY d.deleted_at DESC, d.id DESC)
)
UPDATE databases d SET destroy_at = now() FROM retained
WHERE d.id = retained.id AND (retained.place > $2 OR retained.place > 1 AND retained.bytes > $3)
  AND d.status = 'deleted' AND d.destroy_at > clock_timestamp()
RETURNING d.uuid
"""  # noqa: S608 - our own words

_ALL_RETAINED = f"""
SELECT count(*) AS databases, count(*) FILTER (WHERE d.destroy_at <= now()) AS leaving,
       coalesce(sum(u.storage_bytes), 0)::bigint AS bytes
FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id WHERE {_RETAINED}
"""  # noqa: S608 - our own words


class _Retained(msgspec.Struct, frozen=True):
    databases: int
    leaving: int
    """Those whose destruction is due."""
    bytes: int


async def end_oldest(plans: Plans, team_id: int) -> None:
    """Ends the grace of the team's oldest deleted databases beyond its tier's limits. Call it in a transaction; the
    team stays locked until its end, so that concurrent deletions are counted exactly. Lock the team before any of its
    databases."""
    limits = plans.tiers[(await get_team(team_id, lock=True)).tier]
    for ended in await fetch_values(
        UUID, _END_OLDEST, team_id, limits.deleted_databases, limits.deleted_storage_gb * _GIB
    ):
        record = await records.find(ended)
        assert record is not None, "it was changed a moment ago"
        await wake_deletion(record)


async def check_retained(plans: Plans, team: TeamRecord) -> None:
    """Whether the team may have one more database beside its deleted ones. Raises `DeletionsPending` while more of
    those are on hosts than its tier retains, and some are due to be destroyed."""
    limits = plans.tiers[team.tier]
    (retained,) = await fetch_all(_Retained, _ALL_RETAINED, team.id)
    over = retained.databases > limits.deleted_databases or retained.bytes > limits.deleted_storage_gb * _GIB
    if retained.leaving and over:
        raise DeletionsPending(retained.databases, limits.deleted_databases)
