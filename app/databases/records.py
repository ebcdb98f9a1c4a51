"""A database's row with its team's name and its host's address, as everything above the tables reads it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.audit.drafts import found
from app.auth.teams import get_team
from app.contracts.base import DatabaseStatus, Engine, PauseReason
from app.contracts.databases import Placement
from app.core.errors import NotFound, require_found
from app.databases.filters import DatabaseFilters, conditions
from app.engines.tls import TlsMode
from app.quotas.plans import Quotas
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar, fetch_value, fetch_values
from app.store.tables.databases import Database


class NotWanted(Exception):
    """The row says that this work is no longer to be done."""


class DatabaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `databases`, joined with `teams` and `engine_hosts`. One without a team is in the warm pool, was
    discarded there, or is needed for a while (`scratch.py`): no client ever sees it."""

    id: int
    uuid: UUID
    team_id: int | None
    team_name: str | None
    name: str
    engine: Engine
    region: str
    plan: str
    status: DatabaseStatus
    host_id: int
    host: str
    port: int
    tls: TlsMode
    tls_ca: str | None
    engine_name: str
    password_sealed: bytes | None
    storage_hard_limit_gb: float | None
    connection_hard_limit: int | None
    warning_threshold_pct: int | None
    connections: int
    limits_revision: int
    limits_applied: int
    paused_reason: PauseReason | None
    frozen_at: datetime | None
    access_revision: int
    access_applied: int
    remote_since: datetime | None
    provisioned_at: datetime | None
    deleted_at: datetime | None
    deletion_revision: int
    cancelled_provision_jobs: int
    revoked_at: datetime | None
    destroy_at: datetime | None
    destroyed_at: datetime | None
    deletion_protection: bool
    expires_at: datetime | None
    expiry_announced_at: datetime | None
    created_at: datetime
    updated_at: datetime
    labels: tuple[str, ...] = ()
    """Each as `key:value`, sorted."""
    restoring_at: datetime | None = None
    """Its data is being exchanged since then: nobody is let in, whatever else the row says."""
    destruction_began_at: datetime | None = None
    """Nothing is said of its data on the host since then: it may be gone, or be gone in part."""
    login_name: str | None = None
    """The account that the password belongs to; None where that is `engine_name`."""
    credentials_created_at: datetime | None = None
    """When that account got its password; None where that was with the database."""
    connections_held: int | None = None
    """How many connections it gets while its host is short of them, where they are fewer. Set only where a single
    database is read for its team."""

    @property
    def login(self) -> str:
        """What its tenant logs in as."""
        return self.login_name or self.engine_name

    @property
    def placement(self) -> Placement:
        return Placement(host_id=self.host_id, address=f"{self.host}:{self.port}", name=self.engine_name)

    @property
    def quotas(self) -> Quotas:
        return Quotas(
            storage_hard_limit_gb=self.storage_hard_limit_gb,
            connection_hard_limit=self.connection_hard_limit,
            warning_threshold_pct=self.warning_threshold_pct,
        )


_OF_OTHERS = "t.name AS team_name, h.host, h.port, h.tls, h.tls_ca"
COLUMNS = columns_of(Database, "d")
_SELECT = f"SELECT {COLUMNS}, {_OF_OTHERS} FROM"
_JOINS = "LEFT JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id"
# Locked beneath the joins: above them, a row that has moved to another host while it was waited for would be missed.
_LOCKED = f"{_SELECT} (SELECT * FROM databases d WHERE {{}} FOR NO KEY UPDATE) d {_JOINS}"  # noqa: S608 - our own words
_UNLOCKED = f"{_SELECT} databases d {_JOINS} WHERE {{}}"
_SHOWN = f"""
SELECT {COLUMNS}, {_OF_OTHERS},
       (SELECT at_most FROM connection_holds WHERE database_id = d.id) AS connections_held
FROM databases d {_JOINS} WHERE {{}}
"""  # noqa: S608 - our own words
_CHANGED = (
    f"WITH d AS (UPDATE databases SET {{}} WHERE uuid = $1 AND status = 'provisioning'"  # noqa: S608
    " AND ($2::bigint IS NULL OR (host_id, engine_name) = ($2, $3::text)) RETURNING *) "
    f"{_SELECT} d {_JOINS}"
)
_INSERTED = f"WITH d AS (INSERT INTO databases {{}} RETURNING *) {_SELECT} d {_JOINS}"


def expect(record: DatabaseRecord | None, *statuses: DatabaseStatus) -> DatabaseRecord:
    """The record, if it has one of these statuses. Raises `NotWanted`."""
    if record is None:
        raise NotWanted("there is no such database")
    if record.status not in statuses:
        raise NotWanted(f"the database is {record.status.value}")
    return record


async def find(database: UUID) -> DatabaseRecord | None:
    """The database, in whatever state, and of any team or none."""
    return await fetch_one(DatabaseRecord, _UNLOCKED.format("d.uuid = $1"), database)


async def get_live(database: UUID, *, lock: bool = False) -> DatabaseRecord:
    """The database, of any team, unless it is deleted; `lock` locks it until the end of the transaction. Raises
    `NotFound`."""
    record = await (find_for_update(database) if lock else find(database))
    if record is None or record.team_id is None or record.status is DatabaseStatus.DELETED:
        raise NotFound("database")
    return found(record)


async def lock_with_team(found: DatabaseRecord) -> DatabaseRecord:
    """Locks its team and then the database, as everything does that counts what a team has, until the end of the
    transaction. Raises `NotFound` when it was deleted meanwhile."""
    assert found.team_id is not None, "it is one of a team's"
    await get_team(found.team_id, lock=True)
    return await get_live(found.uuid, lock=True)


async def find_for_update(database: UUID) -> DatabaseRecord | None:
    """The same as `find`, locked until the end of the transaction."""
    return await fetch_one(DatabaseRecord, _LOCKED.format("d.uuid = $1"), database)


async def change_provisioning(database: UUID, change: str, *, at: Placement | None = None) -> DatabaseRecord | None:
    """Applies `change`, an UPDATE's SET, to a database that is being provisioned and, if `at` is given, lies there.
    Returns the record after it; None if there is no such database, and nothing was changed."""
    host_id, name = (None, None) if at is None else (at.host_id, at.name)
    return await fetch_one(DatabaseRecord, _CHANGED.format(change), database, host_id, name)


async def insert(values: str, *arguments: Any) -> DatabaseRecord:
    """Writes one row; `values` is an INSERT's columns and VALUES."""
    row = await fetch_one(DatabaseRecord, _INSERTED.format(values), *arguments)
    assert row is not None, "an INSERT returns its row"
    return row


async def find_owned(database: UUID, team_ids: list[int], *, lock: bool = False) -> DatabaseRecord | None:
    """One of these teams' databases, unless it is deleted."""
    where = "d.uuid = $1 AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'"
    return found(await fetch_one(DatabaseRecord, (_LOCKED if lock else _SHOWN).format(where), database, team_ids))


async def get_owned(database: UUID, team_ids: list[int], *, lock: bool = False) -> DatabaseRecord:
    """The same, for a caller whom only these teams' databases concern: NotFound where it is not one of them."""
    return require_found(await find_owned(database, team_ids, lock=lock), "database")


async def list_owned(team_ids: list[int], *, after: UUID | None, limit: int) -> list[DatabaseRecord]:
    """These teams' databases, newest first, from the one that follows `after` on; none when that is not theirs."""
    return await fetch_all(DatabaseRecord, PAGE, team_ids, after, limit)


async def list_some(
    databases: list[UUID], team_ids: list[int], filters: DatabaseFilters, *, after: UUID | None, limit: int
) -> list[DatabaseRecord]:
    """Which of these databases match and belong to these teams, in the same order."""
    return await fetch_all(DatabaseRecord, _PAGE_OF_SOME, databases, team_ids, after, limit, *filters.values)


async def which_are_owned(databases: Sequence[UUID], team_ids: list[int]) -> set[UUID]:
    """Which of these databases belong to these teams, and are not deleted."""
    found = await fetch_values(
        UUID,
        "SELECT uuid FROM databases"
        " WHERE uuid = any($1::uuid[]) AND team_id = any($2::bigint[]) AND status <> 'deleted'",
        list(databases),
        team_ids,
    )
    return set(found)


async def list_deleted(
    team_ids: list[int], filters: DatabaseFilters, *, after: UUID | None, limit: int
) -> list[DatabaseRecord]:
    """Deleted databases of these teams that match and can be undeleted, the one first that was deleted last, from the
    one that follows `after` on. `after` may have been undeleted or destroyed since."""
    return await fetch_all(DatabaseRecord, _DELETED_PAGE, team_ids, after, limit, *filters.values)


async def was_deleted(database: UUID, team_ids: list[int]) -> bool:
    """Whether it is one of these teams', and was deleted at some time."""
    return await fetch_exists(
        "SELECT 1 FROM databases WHERE uuid = $1 AND team_id = any($2::bigint[]) AND deleted_at IS NOT NULL",
        database,
        team_ids,
    )


async def team_of(database: UUID, team_ids: list[int]) -> int | None:
    """Which of these teams has it, or had it until it was deleted."""
    return await fetch_value(
        int, "SELECT team_id FROM databases WHERE uuid = $1 AND team_id = any($2::bigint[])", database, team_ids
    )


async def count_owned(team_id: int) -> int:
    """How many databases the team has; deleted ones are not its own any more. Exact while the team is locked."""
    return await fetch_scalar(int, "SELECT count(*) FROM databases WHERE team_id = $1 AND status <> 'deleted'", team_id)


async def lock(database_id: int) -> None:
    """Locks the row until the end of the transaction."""
    await execute("SELECT 1 FROM databases WHERE id = $1 FOR NO KEY UPDATE", database_id)


class _Names(msgspec.Struct, frozen=True):
    uuid: UUID
    name: str
    team: str | None


async def names_of(databases: list[UUID]) -> dict[UUID, tuple[str, str | None]]:
    """The names of databases and their teams by uuid, for operators, who read uuids badly. A database that is not in
    our records is left out."""
    found = await fetch_all(
        _Names,
        "SELECT d.uuid, d.name, t.name AS team FROM databases d LEFT JOIN teams t ON t.id = d.team_id"
        " WHERE d.uuid = any($1::uuid[])",
        databases,
    )
    return {one.uuid: (one.name, one.team) for one in found}


# A page is read off one index, team by team. By -position, which only that index sorts by: by position, a plan that
# serves all teams alike may walk all of an index on it, for a team with a few old databases.
PAGE = f"""
SELECT {COLUMNS}, {_OF_OTHERS}
FROM unnest($1::bigint[]) AS mine (team_id)
CROSS JOIN LATERAL (
    SELECT * FROM databases
    WHERE team_id = mine.team_id AND status <> 'deleted' AND -position > (
        SELECT CASE WHEN $2::uuid IS NULL THEN -9223372036854775807
                    ELSE (SELECT -position FROM databases WHERE uuid = $2 AND team_id = any($1)) END
    )
    ORDER BY -position LIMIT $3
) d
JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
ORDER BY d.position DESC LIMIT $3
"""  # noqa: S608 - our own words

# The tiers limit how many there are. A cancelled create has nothing to come back to.
_PAGE_OF_SOME = f"""
SELECT {COLUMNS}, {_OF_OTHERS}
FROM databases d JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
WHERE d.uuid = any($1::uuid[]) AND d.team_id = any($2::bigint[]) AND d.status <> 'deleted'
  AND ($3::uuid IS NULL OR d.position < (SELECT position FROM databases WHERE uuid = $3 AND team_id = any($2)))
  AND {conditions(5)}
ORDER BY d.position DESC LIMIT $4
"""  # noqa: S608 - our own words
_DELETED_PAGE = f"""
SELECT {COLUMNS}, {_OF_OTHERS}
FROM databases d JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
WHERE d.team_id = any($1::bigint[]) AND d.status = 'deleted' AND d.destroyed_at IS NULL AND d.destroy_at > now()
  AND d.cancelled_provision_jobs = 0
  AND ($2::uuid IS NULL OR (d.deleted_at, d.id) < (
      SELECT deleted_at, id FROM databases WHERE uuid = $2 AND team_id = any($1::bigint[])))
  AND {conditions(4)}
ORDER BY d.deleted_at DESC, d.id DESC LIMIT $3
"""  # noqa: S608 - our own words
