"""Scheduled backups: which databases have a policy, which are due, and asking for their backups.

Each database has its own moment in the interval, so that all together are spread evenly over it. After an outage what
was missed is made up for once, a few of each team in each region at a time.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from app.audit.actions import Action
from app.audit.events import append
from app.backups import ends, records
from app.backups.policies import BackupTerms, find, next_backup, schedule
from app.backups.requests import request_backup
from app.backups.retention import FULL, make_room
from app.contracts.backups import BackupKind
from app.contracts.base import DatabaseStatus
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.store.session import execute, fetch_all, fetch_exists, fetch_scalar, fetch_values, transaction

_AT_ONCE = 4
"""Scheduled backups of one team in one region that have been asked for and not ended; the others stay due. Those of a
region whose workers are away keep none in another region waiting."""

_DUE = """
SELECT uuid FROM (
    SELECT d.uuid, p.backup_at, row_number() OVER (PARTITION BY d.team_id, d.region ORDER BY p.backup_at) + (
        SELECT count(*) FROM backups b WHERE b.team_id = d.team_id AND b.region = d.region
                                         AND b.status IN ('pending', 'running') AND b.kind = 'scheduled') AS place
    FROM backup_policies p JOIN databases d ON d.id = p.database_id
    WHERE p.backup_at <= now() AND d.team_id IS NOT NULL AND d.uuid <> ALL ($2::uuid[])
) due WHERE place <= $3 ORDER BY backup_at LIMIT $1
"""


async def find_due(most: int, *, without: list[UUID]) -> list[UUID]:
    """The databases of which a backup is due, except those of `without`; of each team only as many in a region as are
    asked for at once."""
    return await fetch_values(UUID, _DUE, most, without, _AT_ONCE)


async def request_due(terms: BackupTerms, database: UUID) -> bool:
    """Asks for the backup that is due, and says when the next one is. False where it isn't due any more, or nothing is
    left to be backed up; a database that is being made, or made again, has its turn later."""
    async with transaction():
        record = await databases.find_for_update(database)
        if record is None or record.team_id is None or not await _is_due(record.id):
            return False
        if record.status is DatabaseStatus.DELETED:
            await schedule(record.id, None)
            return False
        rules = (await find(record.id)).over(terms.plans.by_name[record.plan].backups)
        if not rules.enabled:
            await schedule(record.id, None)
            return False
        now = await fetch_scalar(datetime, "SELECT now()")
        await schedule(record.id, next_backup(terms, database, rules, now))
        if record.status is DatabaseStatus.PROVISIONING or await records.is_lost(record.id):
            return False
        if await _is_under_way(record.id):
            return False
        if not await make_room(terms.plans, record.team_id):
            await _refuse(record)
            return False
        requested = await request_backup(record, BackupKind.SCHEDULED)
        changes = {"backup": (None, str(requested.record.uuid))}
        await append(Action.BACKUP_TAKE, ("database", database), team_id=record.team_id, changes=changes)
        return True


async def _refuse(record: DatabaseRecord) -> None:
    """Lets the team learn, by a failed backup, that it has none of this time."""
    requested = await request_backup(record, BackupKind.SCHEDULED)
    await ends.fail(requested.record.uuid, FULL)


class _Unscheduled(msgspec.Struct, frozen=True):
    id: int
    uuid: UUID


_UNSCHEDULED = """
SELECT d.id, d.uuid FROM databases d LEFT JOIN backup_policies p ON p.database_id = d.id
WHERE d.team_id IS NOT NULL AND d.status IN ('active', 'paused') AND d.plan = $1 AND p.backup_at IS NULL
  AND coalesce(p.enabled, $2)
ORDER BY d.id LIMIT 1000
"""


async def enrol(terms: BackupTerms) -> int:
    """Says when the first backup is due of each database whose policy is on, and which has no such time yet: it is new,
    was undeleted, or its plan has changed. Returns how many there were."""
    enrolled = 0
    for plan, entry in terms.plans.by_name.items():
        for one in await fetch_all(_Unscheduled, _UNSCHEDULED, plan, entry.backups.enabled):
            async with transaction():
                rules = (await find(one.id)).over(entry.backups)
                now = await fetch_scalar(datetime, "SELECT now()")
                await execute(
                    "INSERT INTO backup_policies AS p (database_id, backup_at) VALUES ($1, $2)"
                    " ON CONFLICT (database_id) DO UPDATE SET backup_at = excluded.backup_at WHERE p.backup_at IS NULL",
                    one.id,
                    next_backup(terms, one.uuid, rules, now),
                )
                enrolled += 1
    return enrolled


async def _is_due(database_id: int) -> bool:
    return await fetch_exists(
        "SELECT 1 FROM backup_policies WHERE database_id = $1 AND backup_at <= now() FOR NO KEY UPDATE", database_id
    )


async def _is_under_way(database_id: int) -> bool:
    return await fetch_exists(
        "SELECT 1 FROM backups WHERE database_id = $1 AND kind = 'scheduled' AND status IN ('pending', 'running')",
        database_id,
    )
