"""Rows of the warm pool: databases without a team, made before anybody asks for them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_values

_READY_MEMBERS = """
JOIN engine_hosts h ON h.id = d.host_id
WHERE d.team_id IS NULL AND d.destroyed_at IS NULL AND d.status = 'active'
"""


class PoolMember(msgspec.Struct, frozen=True, kw_only=True):
    """A database of the pool that is ready or on its way, with its host's state."""

    uuid: UUID
    status: DatabaseStatus
    connections: int
    provisioned_at: datetime | None
    draining: bool
    sick: bool


async def list_members(engine: Engine, region: str) -> list[PoolMember]:
    """The members of this pool that are ready or on their way."""
    return await fetch_all(
        PoolMember,
        """
        SELECT d.uuid, d.status, d.connections, d.provisioned_at, h.draining, h.sick_until IS NOT NULL AS sick
        FROM databases d JOIN engine_hosts h ON h.id = d.host_id
        WHERE d.engine = $1 AND d.region = $2 AND d.team_id IS NULL AND d.destroyed_at IS NULL
          AND d.status IN ('provisioning', 'active')
        ORDER BY d.id
        """,
        engine,
        region,
    )


class DiscardedMember(msgspec.Struct, frozen=True):
    engine: Engine
    region: str
    deletion_revision: int


async def mark_discarded(database: UUID) -> DiscardedMember | None:
    """Changes a ready member to `deleted`, to be destroyed now. Returns None where it is not, or no longer, the
    pool's."""
    return await fetch_one(
        DiscardedMember,
        """
        UPDATE databases SET status = 'deleted', deleted_at = now(), updated_at = now(), destroy_at = now(),
               deletion_revision = deletion_revision + 1
        WHERE uuid = $1 AND team_id IS NULL AND status = 'active' RETURNING engine, region, deletion_revision
        """,
        database,
    )


async def delete_discarded() -> None:
    """Deletes the rows of databases without a team of which nothing is left on any host: nobody ever saw them. Their
    workflows have long ended."""
    await execute("DELETE FROM databases WHERE team_id IS NULL AND destroyed_at < now() - interval '3 days'")


class IdleMember(msgspec.Struct, frozen=True):
    uuid: UUID
    host_id: int
    connections: int


async def lock_idle(host_ids: Sequence[int]) -> list[IdleMember]:
    """The members on these hosts, oldest first, locked. Those that somebody is about to claim are passed over: nobody
    waits for them with a host locked."""
    return await fetch_all(
        IdleMember,
        """
        SELECT uuid, host_id, connections FROM databases
        WHERE team_id IS NULL AND destroyed_at IS NULL AND status = 'active' AND host_id = any($1::bigint[])
        ORDER BY position FOR NO KEY UPDATE SKIP LOCKED
        """,
        list(host_ids),
    )


async def regions_unverified(before: datetime) -> list[str]:
    """Regions with members whose last proof is not newer than `before`, or came before their host failed."""
    return await fetch_values(
        str,
        f"""
        SELECT DISTINCT d.region FROM databases d {_READY_MEMBERS}
        AND (coalesce(d.verified_at, d.provisioned_at) <= $1 OR h.sick_until <= now()) ORDER BY d.region
        """,  # noqa: S608 - our own words
        before,
    )


class UnverifiedMember(msgspec.Struct, frozen=True, kw_only=True):
    uuid: UUID
    host_id: int
    engine_name: str
    password_sealed: bytes


async def unverified_members(region: str, before: datetime, most: int) -> list[UnverifiedMember]:
    """The members that `regions_unverified` means, in one region; at most `most`, the hosts in turn: those of one that
    is away stay unverified, and hold up no others."""
    return await fetch_all(
        UnverifiedMember,
        f"""
        SELECT d.uuid, d.host_id, d.engine_name, d.password_sealed FROM databases d {_READY_MEMBERS}
        AND d.region = $1 AND (coalesce(d.verified_at, d.provisioned_at) <= $2 OR h.sick_until <= now())
        ORDER BY row_number() OVER (PARTITION BY d.host_id ORDER BY d.id), d.id LIMIT $3
        """,  # noqa: S608 - our own words
        region,
        before,
        most,
    )


async def record_verified(database: UUID) -> None:
    """Records that a login to a member succeeded; nothing happens to one that was claimed meanwhile."""
    await execute("UPDATE databases SET verified_at = now() WHERE uuid = $1 AND team_id IS NULL", database)


async def is_create_waiting(engine: Engine, region: str, seconds: float) -> bool:
    """Whether a team's database is being made there that was asked for within the last `seconds`."""
    return await fetch_exists(
        """
        SELECT 1 FROM databases
        WHERE status = 'provisioning' AND team_id IS NOT NULL AND engine = $1 AND region = $2
          AND created_at > now() - make_interval(secs => $3)
        LIMIT 1
        """,
        engine,
        region,
        seconds,
    )
