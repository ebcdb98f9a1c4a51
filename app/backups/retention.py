"""How long backups are kept, and how what is not kept goes from the store.

A backup first ends in its row. What has ended is removed from the store afterwards, again and again until nothing is
left: that touches only what lies under the backup's own name.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from app.auth.teams import get_team
from app.backups import records
from app.backups.policies import BackupTerms, find_rules
from app.backups.records import BackupRecord
from app.backups.storage.errors import BackupLocked
from app.backups.storage.store import BackupStore
from app.contracts.backups import BackupKind
from app.core.errors import TeamLimitReached
from app.quotas.plans import Plans
from app.store.session import execute, fetch_all, fetch_values, transaction

FULL = "The team's backups take as much in the store as its tier allows."
BEFORE_CHANGES = (BackupKind.FINAL, BackupKind.BEFORE_RESTORE)
"""The kinds that keep what there is before something else is done, which waits for them, and goes on without them where
there is nothing to be kept."""

_REMOVABLE = """
status IN ('failed', 'cancelled', 'expired', 'deleted') AND removed_at IS NULL
AND coalesce(beat_at < now() - make_interval(secs => $3), true) AND coalesce(locked_until <= now(), true)
"""


async def keep_until(terms: BackupTerms, record: BackupRecord, at: datetime) -> datetime | None:
    """When a backup of the moment `at` expires. None if never: a backup that a client asked for without saying how long
    is kept."""
    if record.keep_days is not None:
        return at + terms.days(record.keep_days)
    if record.kind is BackupKind.MANUAL:
        return None
    rules = await find_rules(terms.plans, record.database_id, record.plan)
    return at + terms.days(rules.keep_days)


# As `expire` decides it, so that backups that the rules keep for good are no work for each look.
_EXPIRING = f"""
WITH due AS (
    SELECT DISTINCT database_uuid FROM backups
    WHERE status = 'completed' AND expires_at <= now() AND database_uuid <> ALL ($2::uuid[])
), restored AS ({records.RESTORED.format(which="d.uuid IN (SELECT database_uuid FROM due)")})
SELECT kept.database_uuid FROM (
    SELECT database_uuid, expires_at, row_number() OVER first AS place, first_value(plan) OVER newest AS plan,
           first_value(database_id) OVER newest AS database_id, {records.HELD} AS held
    FROM backups WHERE status = 'completed' AND database_uuid IN (SELECT database_uuid FROM due)
    WINDOW newest AS (PARTITION BY database_uuid ORDER BY consistent_at DESC, id DESC),
           first AS (PARTITION BY database_uuid
                     ORDER BY (database_uuid, uuid) IN (SELECT * FROM restored) DESC, consistent_at DESC, id DESC)
) kept
JOIN unnest($3::text[], $4::integer[]) AS rules (plan, keep_last) ON rules.plan = kept.plan
LEFT JOIN backup_policies p ON p.database_id = kept.database_id
WHERE kept.expires_at <= now() AND NOT kept.held AND kept.place > coalesce(p.keep_last, rules.keep_last)
GROUP BY kept.database_uuid ORDER BY min(kept.expires_at), kept.database_uuid LIMIT $1
"""  # noqa: S608  our own words


async def find_expiring(plans: Plans, most: int, *, without: list[UUID]) -> list[UUID]:
    """The databases, existing or gone, with a backup that may go because its time is over, the longest over first,
    except those of `without`."""
    keep_last = {name: plan.backups.keep_last for name, plan in plans.by_name.items()}
    return await fetch_values(UUID, _EXPIRING, most, without, list(keep_last), list(keep_last.values()))


class _Held(msgspec.Struct, frozen=True):
    id: int
    database: UUID
    stored_bytes: int
    place: int
    """Its place among the backups of its database, the newest first. The one that the database was last restored from
    counts as the newest."""
    keep_last: int | None
    """The database's own setting, where it has one."""
    plan: str
    """The plan of its database, as the database's newest backup has it."""
    kind: BackupKind
    of_kind: int
    """Its place among the backups of its kind and its database; the one that was asked for last comes first."""
    held: bool

    def stays(self, plans: Plans) -> bool:
        """Whether its policy keeps it, whatever its age."""
        return self.place <= (self.keep_last or plans.by_name[self.plan].backups.keep_last)

    def may_go_early(self, plans: Plans) -> bool:
        """Whether nobody asked for it and nothing needs it. Of the backups taken before a change, the newest of its
        kind stays: it is the way back, or a destruction waits for it."""
        by_itself = self.kind is BackupKind.SCHEDULED or (self.kind in BEFORE_CHANGES and self.of_kind > 1)
        return by_itself and not self.held and not self.stays(plans)


_HELD = f"""
WITH restored AS ({records.RESTORED.format(which="d.team_id = $1")})
SELECT id, database_uuid AS database, coalesce(stored_bytes, 0) AS stored_bytes, kind,
       row_number() OVER (PARTITION BY database_uuid, kind ORDER BY id DESC) AS of_kind,
       row_number() OVER first AS place, first_value(plan) OVER newest AS plan,
       (SELECT p.keep_last FROM backup_policies p WHERE p.database_id = backups.database_id) AS keep_last,
       {records.HELD} AS held
FROM backups WHERE team_id = $1 AND status = 'completed'
WINDOW newest AS (PARTITION BY database_uuid ORDER BY consistent_at DESC, id DESC),
       first AS (PARTITION BY database_uuid
                 ORDER BY (database_uuid, uuid) IN (SELECT * FROM restored) DESC, consistent_at DESC, id DESC)
ORDER BY consistent_at, id
"""  # noqa: S608  our own words


class _Room(msgspec.Struct, frozen=True):
    """What a team's tier leaves for one more backup, once those have gone that go before their time."""

    early: list[_Held]
    staying: list[_Held]
    reached: TeamLimitReached | None
    """Why there is no room; None if there is."""


async def make_room(plans: Plans, team_id: int, *, counted: bool = False) -> bool:
    """Makes room for one more backup, in a transaction; returns whether the team's backups take less than its tier
    allows and, with `counted`, are fewer than it allows. Until they are, the oldest that nobody asked for go before
    their time, but never those that `keep_last` protects, one that is being restored, or the newest that was taken
    before a deletion, or a restore, of its database."""
    while True:
        room = await _find_room(plans, team_id, counted=counted)
        # What a restoration needs by now is seen as such by another look.
        if not room.early or not await _end_unneeded([one.id for one in room.early]):
            return room.reached is None


async def has_room(plans: Plans, team_id: int) -> bool:
    """Whether `make_room`, with `counted`, would make room."""
    return (await _find_room(plans, team_id, counted=True)).reached is None


async def check_before_restore(plans: Plans, team_id: int, database: UUID) -> None:
    """Checks that a restore may take one more backup of what there is. One of each database is taken whatever the tier
    says, so that no team is kept from its way back; those beyond that one make room where they may go before their
    time. Raises `TeamLimitReached` where there is no room, and `keep_last` protects more than one."""
    room = await _find_room(plans, team_id, counted=True)
    before = [one for one in room.staying if one.database == database and one.kind is BackupKind.BEFORE_RESTORE]
    if room.reached is not None and len(before) > 1:
        raise room.reached


async def _find_room(plans: Plans, team_id: int, *, counted: bool) -> _Room:
    tier = plans.tiers[(await get_team(team_id)).tier]
    held = await fetch_all(_Held, _HELD, team_id)
    total, number = sum(one.stored_bytes for one in held), len(held)

    def reached() -> TeamLimitReached | None:
        if total >= tier.backup_storage_gb * 2**30:
            return TeamLimitReached("backup_storage_gb", tier.backup_storage_gb)
        return TeamLimitReached("backups", tier.backups) if counted and number >= tier.backups else None

    early: list[_Held] = []
    staying: list[_Held] = []
    for one in held:
        goes = reached() is not None and one.may_go_early(plans)
        (early if goes else staying).append(one)
        if goes:
            total, number = total - one.stored_bytes, number - 1
    return _Room(early=early, staying=staying, reached=reached())


class _RetainedBackup(msgspec.Struct, frozen=True):
    id: int
    uuid: UUID
    database_id: int | None
    plan: str
    consistent_at: datetime
    over: bool


async def expire(terms: BackupTerms, database: UUID) -> int:
    """Ends the database's backups whose time is over, but for the newest that its rules keep whatever their age, and
    those that a restore needs. The one that the database was last restored from counts as the newest: it has what the
    database has. Returns how many ended."""
    async with transaction():
        restored = await records.find_restored(database)
        kept = await fetch_all(
            _RetainedBackup,
            """
            SELECT id, uuid, database_id, plan, consistent_at, coalesce(expires_at <= now(), false) AS over FROM backups
            WHERE database_uuid = $1 AND status = 'completed' ORDER BY id FOR NO KEY UPDATE
            """,
            database,
        )
        if not kept:
            return 0
        # Locked in the order of their ids, as everywhere where several are locked.
        kept.sort(key=lambda one: (one.consistent_at, one.id), reverse=True)
        rules = await find_rules(terms.plans, kept[0].database_id, kept[0].plan)
        first = sorted(kept, key=lambda one: restored is None or one.uuid != restored.uuid)
        over = [one.id for one in first[rules.keep_last :] if one.over]
        return len(over) - len(await _end_unneeded(over))


async def _end_unneeded(expired: list[int]) -> list[int]:
    """Ends these backups, but for those that a restoration needs; returns the latter, which end at a later look. In a
    transaction."""
    # Before the look: a statement that waits for a row's lock sees other tables as they were before.
    await execute("SELECT 1 FROM backups WHERE id = any($1::bigint[]) ORDER BY id FOR NO KEY UPDATE", expired)
    ended = await fetch_values(
        int,
        f"UPDATE backups SET status = 'expired', changed_at = now() WHERE id = any($1::bigint[])"  # noqa: S608
        f" AND status = 'completed' AND NOT {records.HELD} RETURNING id",
        expired,
    )
    return [one for one in expired if one not in ended]


async def find_removable(region: str, most: int, *, without: list[UUID]) -> list[UUID]:
    """The backups of this region that have ended and of which the store may still have something, except those of
    `without`; and such backups of regions without a host, which no worker serves any more. A backup whose last attempt
    may still write waits until the attempt has ended, or has been silent for long; one that Object Lock keeps waits for
    the end of the lock."""
    return await fetch_values(
        UUID,
        f"""
        SELECT uuid FROM backups WHERE {_REMOVABLE} AND uuid <> ALL ($2::uuid[]) AND (region = $4 OR NOT EXISTS (
            SELECT FROM engine_hosts h WHERE h.region = backups.region AND h.removed_at IS NULL))
        ORDER BY changed_at LIMIT $1
        """,  # noqa: S608 - our own words
        most,
        without,
        records.SILENT_SECONDS,
        region,
    )


async def remove(store: BackupStore, backup: UUID) -> None:
    """Removes what the store has of a backup that has ended. One that Object Lock keeps is left to the first look after
    the lock's end. Raises `BackupStoreError`."""
    record = await records.find(backup)
    if record is None or not record.over:
        return
    try:
        await store.delete(backup)
    except BackupLocked as locked:
        await execute("UPDATE backups SET locked_until = $2 WHERE uuid = $1", backup, locked.until)
        return
    await execute(
        "UPDATE backups SET removed_at = now(), stored_bytes = NULL, wrapped_key = NULL WHERE uuid = $1", backup
    )
