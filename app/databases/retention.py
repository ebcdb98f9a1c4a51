"""What a team holds of databases that it deleted: their data is kept for a while, within its tier's bounds."""

from uuid import UUID

import msgspec

from app.auth.teams import TeamRecord, get_team
from app.core.errors import DeletionsPending
from app.databases import records
from app.databases.deletion import wake_deletion
from app.quotas.tiers import TIER_LIMITS
from app.store.session import fetch_all, fetch_values

_GIB = 2**30

# Whatever of a team's deleted databases still lies on a host.
_HELD = "d.team_id = $1 AND d.status = 'deleted' AND d.destroyed_at IS NULL"

# The newest first, so that place and sum tell what would be kept with each. One that never became active, deleted in
# this very transaction, is kept no more: it takes no other's place.
_END_OLDEST = f"""
WITH kept AS (
    SELECT d.id, row_number() OVER newest AS place, sum(coalesce(u.storage_bytes, 0)) OVER newest AS bytes
    FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id
    WHERE {_HELD} AND d.destroy_at > clock_timestamp()
    WINDOW newest AS (ORDER BY d.deleted_at DESC, d.id DESC)
)
UPDATE databases d SET destroy_at = now() FROM kept
WHERE d.id = kept.id AND (kept.place > $2 OR kept.place > 1 AND kept.bytes > $3)
  AND d.status = 'deleted' AND d.destroy_at > clock_timestamp()
RETURNING d.uuid
"""  # noqa: S608 - our own words

_ALL_HELD = f"""
SELECT count(*) AS databases, count(*) FILTER (WHERE d.destroy_at <= now()) AS leaving,
       coalesce(sum(u.storage_bytes), 0)::bigint AS bytes
FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id WHERE {_HELD}
"""  # noqa: S608 - our own words


class _Held(msgspec.Struct, frozen=True):
    databases: int
    leaving: int
    """Those whose destruction is due."""
    bytes: int


async def end_oldest(team_id: int) -> None:
    """Ends the grace of the team's oldest deleted databases, as many as its tier has them keep fewer. In a transaction;
    the team stays locked until its end, so what is kept is exact however many are deleted at once. Lock the team
    before any database of its."""
    limits = TIER_LIMITS[(await get_team(team_id, lock=True)).tier]
    for ended in await fetch_values(
        UUID, _END_OLDEST, team_id, limits.deleted_databases, limits.deleted_storage_gb * _GIB
    ):
        record = await records.find(ended)
        assert record is not None, "it was changed a moment ago"
        await wake_deletion(record)


async def check_held(team: TeamRecord) -> None:
    """Whether the team may have one more database beside what it deleted. Raises `DeletionsPending` while more of that
    lies on hosts than its tier has it keep: it is due to be destroyed, and makes room when it is."""
    limits = TIER_LIMITS[team.tier]
    (held,) = await fetch_all(_Held, _ALL_HELD, team.id)
    over = held.databases > limits.deleted_databases or held.bytes > limits.deleted_storage_gb * _GIB
    if held.leaving and over:
        raise DeletionsPending(held.databases, limits.deleted_databases)
