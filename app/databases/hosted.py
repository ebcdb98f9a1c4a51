"""The databases of one host, and the owners of what lies on it: what reconciling compares with the engine."""

from datetime import timedelta
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus
from app.core.ids import marker
from app.store.session import fetch_all, fetch_exists, fetch_value, fetch_values


class RecordedDatabase(msgspec.Struct, frozen=True):
    """A database that may have left something on its host."""

    uuid: UUID
    status: DatabaseStatus
    engine_name: str
    login: str
    """What its tenant logs in as."""
    password_sealed: bytes | None
    provisioned: bool
    revoked: bool
    frozen: bool
    """It may not write."""
    changing: bool
    """A pause, a freeze or its end is not applied on the engine yet."""
    settled: bool
    """Nothing of it has changed for a while, so that no step is running."""
    connections: int
    """The tenant's connection limit."""
    refused: bool
    """Its credentials were refused, and are not known to work again."""
    leaving: bool
    """Its destruction is due."""

    @property
    def marker(self) -> str:
        return marker(self.uuid)


_RECORDED = """
SELECT uuid, status, engine_name, coalesce(login_name, engine_name) AS login, password_sealed,
       provisioned_at IS NOT NULL AS provisioned,
       revoked_at IS NOT NULL AS revoked, frozen_at IS NOT NULL AS frozen,
       status <> 'deleted' AND access_applied < access_revision AS changing,
       (status = 'deleted' OR access_applied >= access_revision)
           AND greatest(updated_at, access_changed_at) < now() - $2::interval AS settled,
       connections, credentials_refused_at IS NOT NULL AS refused,
       coalesce(destroy_at <= now(), false) AS leaving
FROM databases WHERE host_id = $1 AND destroyed_at IS NULL
"""


async def recorded_on(host_id: int, patience: timedelta) -> list[RecordedDatabase]:
    """The databases that may have left traces on this host. One is `settled` if it has not changed for `patience`."""
    return await fetch_all(RecordedDatabase, _RECORDED, host_id, patience)


class MeasurableDatabase(msgspec.Struct, frozen=True):
    id: int
    uuid: UUID
    engine_name: str
    settled: bool
    """The engine has followed all changes of its access."""
    running: bool
    """It is neither paused nor being restored."""


async def measurable_on(host_id: int) -> list[MeasurableDatabase]:
    """The teams' databases there that may be used, or would be if they weren't paused."""
    return await fetch_all(
        MeasurableDatabase,
        """
        SELECT id, uuid, engine_name, access_applied >= access_revision AS settled,
               status = 'active' AND restoring_at IS NULL AS running
        FROM databases WHERE host_id = $1 AND team_id IS NOT NULL AND status IN ('active', 'paused') ORDER BY id
        """,
        host_id,
    )


async def live_on(host_id: int) -> list[UUID]:
    """The teams' databases there that are neither being made nor deleted."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE host_id = $1 AND team_id IS NOT NULL AND status IN ('active', 'paused')"
        " ORDER BY id",
        host_id,
    )


async def leaving_on(host_id: int) -> list[UUID]:
    """The databases there whose destruction is due, and not done. Nothing brings them back."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases"
        " WHERE host_id = $1 AND status = 'deleted' AND destroyed_at IS NULL AND destroy_at <= now() ORDER BY id",
        host_id,
    )


async def is_name_taken(host_id: int, name: str) -> bool:
    """Whether a database lies there under this name."""
    return await fetch_exists(
        "SELECT 1 FROM databases WHERE host_id = $1 AND engine_name = $2 AND destroyed_at IS NULL", host_id, name
    )


async def find_other_host(database: UUID, host_id: int, name: str) -> str | None:
    """The address of the other host on which the database lies under this name, with data or soon; None where it lies
    on none."""
    return await fetch_value(
        str,
        """
        SELECT h.host || ':' || h.port FROM databases d JOIN engine_hosts h ON h.id = d.host_id
        WHERE d.uuid = $1 AND d.host_id <> $2 AND d.engine_name = $3 AND d.destroyed_at IS NULL
          AND (d.status <> 'provisioning' OR d.restoring_at IS NOT NULL)
        """,
        database,
        host_id,
        name,
    )


async def is_active(database: UUID) -> bool:
    return await fetch_exists("SELECT 1 FROM databases WHERE uuid = $1 AND status = 'active'", database)


async def is_frozen(database: UUID, host_id: int, name: str) -> bool | None:
    """Whether the database is frozen; None unless it is active at that place, and its engine has followed all changes
    of its access."""
    return await fetch_value(
        bool,
        """
        SELECT frozen_at IS NOT NULL FROM databases WHERE uuid = $1 AND host_id = $2 AND engine_name = $3
        AND status = 'active' AND access_applied >= access_revision
        """,
        database,
        host_id,
        name,
    )


class _Marked(msgspec.Struct, frozen=True):
    uuid: UUID
    marker: str


async def owners_of_markers(markers: list[str]) -> dict[str, UUID]:
    """The databases that these markers belong to, by marker, as `app.core.ids.marker` makes them."""
    found = await fetch_all(
        _Marked,
        """
        SELECT uuid, marker FROM (
            SELECT uuid, 'headwater:'
                   || left(encode(sha256('headwater marker '::bytea || uuid_send(uuid)), 'hex'), 32) AS marker
            FROM databases
        ) d WHERE marker = any($1::text[])
        """,
        markers,
    )
    return {one.marker: one.uuid for one in found}
