"""Members of the warm pool that become a team's, and the rows of databases that are made for one."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.contracts.base import Engine
from app.databases import records
from app.databases.records import DatabaseRecord
from app.quotas.plans import Quotas
from app.store.columns import columns_of
from app.store.session import Statement, fetch_all, fetch_exists, fetch_one
from app.store.tables.databases import Database


class PlacedDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database that is to be provisioned on this host. A member of the warm pool has no team, user or name."""

    uuid: UUID
    team_id: int | None = None
    user_id: int | None = None
    name: str = ""
    engine: Engine
    region: str
    plan: str
    quotas: Quotas = Quotas()
    connections: int
    host_id: int
    engine_name: str
    password_sealed: bytes
    deletion_protection: bool = False
    expires_at: datetime | None = None
    labels: tuple[str, ...] = ()
    restoring: bool = False
    """It is to be filled before anybody is let in."""


class MemberKind(msgspec.Struct, frozen=True, kw_only=True):
    """What a create needs of a member of the warm pool. Creates of one kind are served by the same members."""

    engine: Engine
    region: str | None
    """None: any."""
    connections: int
    """How many the database is to allow at once."""


class ReadyMember(DatabaseRecord, frozen=True, kw_only=True):
    """A member of the warm pool as it was read. PostgreSQL gives a row another `xmin` with every change, so that
    `hold` can check whether this is still true."""

    version: int
    """The row's `xmin`."""
    host_version: int
    """The `xmin` of its host's row."""


async def insert(new: PlacedDatabase) -> DatabaseRecord:
    """Writes the row, in the transaction that chose the host."""
    return await records.insert(
        """
        (uuid, team_id, created_by_id, name, engine, region, plan, status, host_id, engine_name, password_sealed,
         storage_hard_limit_gb, connection_hard_limit, warning_threshold_pct, connections, deletion_protection,
         expires_at, labels, restoring_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'provisioning', $8, $9, $10, $11, $12, $13, $14, $15, $16,
                $17, CASE WHEN $18 THEN now() END)
        """,
        new.uuid,
        new.team_id,
        new.user_id,
        new.name,
        new.engine,
        new.region,
        new.plan,
        new.host_id,
        new.engine_name,
        new.password_sealed,
        new.quotas.storage_hard_limit_gb,
        new.quotas.connection_hard_limit,
        new.quotas.warning_threshold_pct,
        new.connections,
        new.deletion_protection,
        new.expires_at,
        new.labels,
        new.restoring,
    )


# A host that failed is placed on again after a while, to find out. A claim asks no host, so what waits there is given
# out once the host has answered. The oldest first, so that few get too old. By position, which only the index of the
# pools sorts by: by id, a plan may walk the primary key through all that was ever claimed.
_READY = f"""
SELECT {columns_of(Database, "m")},
       m.xmin AS version, h.xmin AS host_version, NULL AS team_name, h.host, h.port, h.tls, h.tls_ca
FROM databases m JOIN engine_hosts h ON h.id = m.host_id
WHERE m.team_id IS NULL AND m.destroyed_at IS NULL AND m.status = 'active'
  AND m.engine = $1 AND ($2::text IS NULL OR m.region = $2)
  AND NOT h.draining AND h.sick_until IS NULL AND {{}}
ORDER BY m.position LIMIT {{}}
"""  # noqa: S608 - our own words
FIND_READY = _READY.format(
    "m.connections = $3 AND m.limits_applied >= m.limits_revision AND m.id <> ALL ($4::bigint[])", "$5"
)
# A member that another create is about to take is passed over, without waiting for what becomes of it.
LOCK_READY = _READY.format(
    """(m.connections >= $3 OR EXISTS (
          SELECT FROM unnest($4::bigint[], $5::bigint[]) AS r (host_id, room)
          WHERE r.host_id = m.host_id AND m.connections + r.room >= $3))""",
    "1 FOR NO KEY UPDATE OF m SKIP LOCKED",
)


async def find_ready(kind: MemberKind, *, without: list[int], most: int) -> list[ReadyMember]:
    """The oldest members that allow exactly the kind's number of connections, with that limit in force. None of them is
    locked."""
    return await fetch_all(ReadyMember, FIND_READY, kind.engine, kind.region, kind.connections, without, most)


async def lock_ready(kind: MemberKind, room: dict[int, int]) -> ReadyMember | None:
    """The oldest member that allows the kind's number of connections, or can if `room` is added, which maps hosts to
    the connections that they have left. It is locked until the end of the transaction."""
    return await fetch_one(
        ReadyMember, LOCK_READY, kind.engine, kind.region, kind.connections, list(room), list(room.values())
    )


async def has_ready_with_fewer(kind: MemberKind) -> bool:
    """Whether there may be a member that would do with more connections."""
    return await fetch_exists(
        """
        SELECT 1 FROM databases WHERE team_id IS NULL AND destroyed_at IS NULL AND status = 'active'
          AND engine = $1 AND ($2::text IS NULL OR region = $2) AND connections < $3 LIMIT 1
        """,
        kind.engine,
        kind.region,
        kind.connections,
    )


def hold(member: ReadyMember, team_id: int) -> Statement:
    """Locks a member that was read before, if neither its row nor its host's has changed since and nobody else holds
    it. Locks none while deleted databases of the team are due to be destroyed, because what the team retains has to be
    counted then, and none for a team that is being deleted."""
    sql = """
    SELECT m.id FROM databases m JOIN engine_hosts h ON h.id = m.host_id
    JOIN teams t ON t.id = $4 AND t.deleted_at IS NULL
    WHERE m.id = $1 AND m.xmin = $2 AND h.xmin = $3
      AND NOT EXISTS (SELECT FROM databases WHERE team_id = $4 AND status = 'deleted' AND destroyed_at IS NULL
                                              AND destroy_at <= now())
      AND {condition}
    FOR NO KEY UPDATE OF m SKIP LOCKED FOR KEY SHARE OF t
    """
    return Statement(sql, (member.id, member.version, member.host_version, team_id))


def assign(record: DatabaseRecord, user_id: int) -> Statement:
    """Changes the row of a locked member to what `record` says. It is the newest of its team's databases from then
    on."""
    sql = """
    UPDATE databases SET team_id = $2, created_by_id = $3, name = $4, plan = $5, storage_hard_limit_gb = $6,
           connection_hard_limit = $7, warning_threshold_pct = $8, connections = $9, limits_revision = $10,
           position = DEFAULT, created_at = $11, updated_at = $11, provisioned_at = $11, deletion_protection = $12,
           expires_at = $13, labels = $14
    WHERE id = $1 AND {condition} RETURNING id
    """
    return Statement(
        sql,
        (
            record.id,
            record.team_id,
            user_id,
            record.name,
            record.plan,
            record.storage_hard_limit_gb,
            record.connection_hard_limit,
            record.warning_threshold_pct,
            record.connections,
            record.limits_revision,
            record.created_at,
            record.deletion_protection,
            record.expires_at,
            record.labels,
        ),
    )
