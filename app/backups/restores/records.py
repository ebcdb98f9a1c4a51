"""The rows of restorations."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.backups.holds import hold
from app.contracts.restores import RestorationKind, RestorationOutcome
from app.databases.records import NotWanted
from app.store.session import execute, fetch_all, fetch_exists, fetch_one


class RestorationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `restorations`, with its database's uuid."""

    id: int
    uuid: UUID
    database_id: int
    database: UUID
    kind: RestorationKind
    backup_uuid: UUID | None
    source: UUID | None
    """The database that it is cloned from."""
    pause_source: bool
    loaded_host_id: int | None
    loaded_name: str | None
    scratch: UUID | None
    before_uuid: UUID | None
    exchanging_at: datetime | None
    from_host_id: int | None
    held_seconds: float | None
    outcome: RestorationOutcome | None
    created_at: datetime
    ended_at: datetime | None

    def is_whole_at(self, host_id: int, name: str) -> bool:
        """Whether the data was loaded and compared at that place."""
        return (self.loaded_host_id, self.loaded_name) == (host_id, name)


_SELECT = """
SELECT r.id, r.uuid, r.database_id, d.uuid AS database, r.kind, r.backup_uuid, s.uuid AS source, r.pause_source,
       r.loaded_host_id, r.loaded_name, c.uuid AS scratch, r.before_uuid, r.exchanging_at, r.from_host_id,
       r.held_seconds, r.outcome, r.created_at, r.ended_at
FROM restorations r JOIN databases d ON d.id = r.database_id
LEFT JOIN databases s ON s.id = r.source_id LEFT JOIN databases c ON c.id = r.scratch_id
"""


class NewRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """A restoration that is accepted. `source_id` is that of the database that is cloned."""

    uuid: UUID
    database_id: int
    kind: RestorationKind
    backup_uuid: UUID | None = None
    source_id: int | None = None
    pause_source: bool = False
    from_host_id: int | None = None


async def insert(new: NewRestoration) -> None:
    """Writes the restoration, in the transaction that accepts it, which has locked its database's row or written it.
    Raises `NotFound` or `BackupNotCompleted` for a backup that has ended by now."""
    if new.backup_uuid is not None:
        await hold(new.backup_uuid)
    await execute(
        """
        INSERT INTO restorations (uuid, database_id, kind, backup_uuid, source_id, pause_source, from_host_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        new.uuid,
        new.database_id,
        new.kind.value,
        new.backup_uuid,
        new.source_id,
        new.pause_source,
        new.from_host_id,
    )


async def find(restoration: UUID, *, lock: bool = False) -> RestorationRecord | None:
    """The restoration. `lock` locks its row until the end of the transaction: lock its database first, if you lock
    both."""
    suffix = "FOR NO KEY UPDATE OF r" if lock else ""
    return await fetch_one(RestorationRecord, f"{_SELECT} WHERE r.uuid = $1 {suffix}", restoration)


async def database_of(restoration: UUID) -> UUID:
    """The database of a restoration. Raises `NotWanted` if there is no record of the restoration."""
    found = await find(restoration)
    if found is None:
        raise NotWanted("there is no such restoration")
    return found.database


async def find_open(database_id: int) -> RestorationRecord | None:
    """The restoration under way on this database, or the one that makes it."""
    return await fetch_one(RestorationRecord, f"{_SELECT} WHERE r.database_id = $1 AND r.ended_at IS NULL", database_id)


COUNT_OPEN = """
SELECT count(*) FROM restorations r JOIN databases d ON d.id = r.database_id
WHERE d.team_id = $1 AND r.ended_at IS NULL
"""


async def note_whole(
    restoration: UUID, host_id: int, name: str, *, tables: int | None = None, rows: int | None = None
) -> None:
    """Records that the data is loaded and compared at this place."""
    await execute(
        "UPDATE restorations SET loaded_host_id = $2, loaded_name = $3, loaded_at = now(),"
        " tables = coalesce($4, tables), rows = coalesce($5, rows)"
        " WHERE uuid = $1 AND ended_at IS NULL",
        restoration,
        host_id,
        name,
        tables,
        rows,
    )


async def note_scratch(restoration: UUID, scratch_id: int) -> None:
    """Records the scratch database, in which the backup is proven first."""
    await execute("UPDATE restorations SET scratch_id = $2 WHERE uuid = $1", restoration, scratch_id)


async def note_before(restoration: UUID, backup: UUID) -> None:
    """Records the backup of what there was."""
    await execute("UPDATE restorations SET before_uuid = $2 WHERE uuid = $1", restoration, backup)


async def begin_exchange(restoration: UUID) -> bool:
    """Records that the exchange begins: from now on nothing cancels the restoration. In a transaction that has its
    database's row locked. False where it has ended."""
    return bool(
        await execute(
            "UPDATE restorations SET exchanging_at = coalesce(exchanging_at, now())"
            " WHERE uuid = $1 AND ended_at IS NULL",
            restoration,
        )
    )


async def moved_from(host_id: int) -> list[RestorationRecord]:
    """The newest move of each database from that host."""
    return await fetch_all(
        RestorationRecord,
        f"SELECT * FROM (SELECT DISTINCT ON (m.database_id) m.* FROM ({_SELECT} WHERE r.from_host_id = $1) m"  # noqa: S608
        " ORDER BY m.database_id, m.id DESC) newest ORDER BY database_id",
        host_id,
    )


async def is_left_behind(database: UUID, host_id: int) -> bool:
    """Whether what lies on that host may be newer than what the database got from its backup elsewhere, and no operator
    has given it up."""
    return await fetch_exists(
        "SELECT 1 FROM restorations r JOIN databases d ON d.id = r.database_id"
        " WHERE d.uuid = $1 AND r.from_host_id = $2 AND r.from_released_at IS NULL",
        database,
        host_id,
    )


async def is_given_up(database: UUID, host_id: int) -> bool:
    """Whether an operator has given up what lies on that host of a database that was moved from it."""
    return await fetch_exists(
        "SELECT 1 FROM restorations r JOIN databases d ON d.id = r.database_id"
        " WHERE d.uuid = $1 AND r.from_host_id = $2 AND r.from_released_at IS NOT NULL",
        database,
        host_id,
    )


async def give_up_left_behind(host_id: int) -> int:
    """Gives up what lies on that host of all databases that were moved from it and are whole elsewhere, or are
    destroyed. Returns the number of moves."""
    return await execute(
        """
        UPDATE restorations r SET from_released_at = now() FROM databases d
        WHERE r.from_host_id = $1 AND r.from_released_at IS NULL AND d.id = r.database_id
          AND (d.destroyed_at IS NOT NULL OR EXISTS (
              SELECT FROM restorations l
              WHERE l.database_id = r.database_id AND l.id >= r.id AND l.outcome = 'completed'))
        """,
        host_id,
    )


async def begin_hold(restoration: UUID) -> bool:
    """Records that the source of a clone is about to be held up, once: False where it was before."""
    return bool(
        await execute(
            "UPDATE restorations SET held_seconds = 0"
            " WHERE uuid = $1 AND ended_at IS NULL AND pause_source AND held_seconds IS NULL",
            restoration,
        )
    )


async def note_held(restoration: UUID, seconds: float) -> None:
    """Records for how many seconds the source was held up."""
    await execute("UPDATE restorations SET held_seconds = $2 WHERE uuid = $1", restoration, seconds)


async def end(restoration: UUID, outcome: RestorationOutcome) -> bool:
    """Ends the restoration, in the transaction of what ends with it. False when it had ended before."""
    return bool(
        await execute(
            "UPDATE restorations SET ended_at = now(), outcome = $2 WHERE uuid = $1 AND ended_at IS NULL",
            restoration,
            outcome.value,
        )
    )
