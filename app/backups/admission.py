"""The admission of backups: how many are taken at once on a host, and of a team in a region.

The rows are the queue. A backup that is admitted has its workflow requested; the others wait with the reason `queued`.
Whoever admits holds a lock, and a caller that doesn't get it leaves the work to the next look, so that the numbers are
exact and nobody waits for the lock.
"""

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

import msgspec

from app.backups import records
from app.backups.records import BackupRecord
from app.contracts.backups import BackupDatabase, BackupDatabaseInput, BackupKind
from app.contracts.base import Engine
from app.contracts.queues import backup_workflow_id
from app.operations import progress
from app.operations.records import open_of_workflow
from app.outbox.workflow_starts import PendingStart, request_start
from app.store.session import execute, fetch_all, fetch_scalar, transaction

QUEUE = "queue"
"""The operation's step that ends with the admission."""
PER_HOST = 3
PER_TEAM = 2
_MOST = 100
"""The most backups that one look admits."""
_LOCK = 0x6861_6261_636B_7570
"""The advisory lock of the caller that admits."""


class BackupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most backups under way at once; those before restores are counted apart. Those of a team are counted by
    region, so that a region whose workers are away holds up none in another. While the limit of a team is below that of
    a host, a team never takes all of a host's places."""

    per_host: int = PER_HOST
    per_team: int = PER_TEAM


class WaitingBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that waits for its turn."""

    uuid: UUID
    database: UUID
    engine: Engine
    region: str
    team_id: int
    host_id: int
    kind: BackupKind
    priority: int
    request_id: str | None = None
    """The id of the request that asked for the backup, or for the restore before which it is taken."""

    @property
    def in_restore(self) -> bool:
        """Whether a restore waits for it, with the database closed."""
        return self.kind is BackupKind.BEFORE_RESTORE


class UnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """How many backups of a team have been admitted on a host, and have not ended."""

    team_id: int
    region: str
    host_id: int
    in_restore: bool
    number: int


_UNDER_WAY = """
SELECT b.team_id, b.region, d.host_id, b.kind = 'before_restore' AS in_restore, count(*) AS number
FROM backups b JOIN databases d ON d.id = b.database_id
WHERE b.status IN ('pending', 'running') AND b.admitted_at IS NOT NULL GROUP BY 1, 2, 3, 4
"""
# One backup at a time of each database; none of a database of a lost host before it is whole again; and none between
# the end of a restore's load, after which its tenant is shut out, and the end of the restore, but for the one that is
# taken before the data is replaced. The load itself, which may wait for days, only writes a copy: the tenant works, and
# its backups go on. Those of a deleted database begin all the same: their attempt ends them. A backup that waits for a
# host or a team that has as many under way as it may is left out before anything is counted, so that no other backups
# wait behind it. The first few of each team on each host are looked at, and of each host some more than it has places,
# so that a thousand waiting ones hide no others. A backup that has waited for long comes before all but those of
# restores: a client that asks for one after the other would keep those of policies waiting.
_WAITING = f"""
WITH under_way AS ({_UNDER_WAY}),
     full_teams AS (
         SELECT team_id, region, in_restore FROM under_way GROUP BY 1, 2, 3 HAVING sum(number) >= $1::integer),
     full_hosts AS (SELECT host_id, in_restore FROM under_way GROUP BY 1, 2 HAVING sum(number) >= $2::integer)
SELECT uuid, database, engine, region, team_id, host_id, kind, priority, (
    SELECT o.request_id FROM operations o WHERE o.database_id = w.database_id AND o.finished_at IS NULL
     AND (o.workflow_id = 'backup-database/' || w.uuid OR w.kind = 'before_restore' AND o.type = 'restore') LIMIT 1
) AS request_id FROM (
    SELECT *, row_number() OVER (PARTITION BY host_id, in_restore ORDER BY rank, place, id) AS turn FROM (
        SELECT b.id, b.uuid, b.database_id, b.database_uuid AS database, b.engine, b.region, b.team_id, d.host_id,
               b.kind, b.priority, r.rank, r.in_restore,
               row_number() OVER (PARTITION BY b.team_id, d.host_id, r.in_restore ORDER BY r.rank, b.id) AS place
        FROM backups b JOIN databases d ON d.id = b.database_id CROSS JOIN LATERAL (
            SELECT CASE WHEN b.kind = 'before_restore' THEN -1
                        WHEN b.created_at < now() - interval '10 minutes' THEN 0 ELSE b.priority END AS rank,
                   b.kind = 'before_restore' AS in_restore
        ) r
        WHERE b.status = 'pending' AND b.admitted_at IS NULL
          AND (b.team_id, b.region, r.in_restore) NOT IN (SELECT * FROM full_teams)
          AND (d.host_id, r.in_restore) NOT IN (SELECT * FROM full_hosts)
          AND NOT EXISTS (SELECT FROM backups o WHERE o.database_id = b.database_id AND o.admitted_at IS NOT NULL
                                                  AND o.status IN ('pending', 'running'))
          AND (b.kind = 'before_restore' OR NOT EXISTS (
              SELECT FROM restorations l
              WHERE l.database_id = b.database_id AND l.loaded_name IS NOT NULL AND l.ended_at IS NULL))
          AND (d.status = 'deleted' OR NOT {records.LOST})
    ) w WHERE place <= $1
) w WHERE turn <= 10 * $2 ORDER BY rank, place, id
"""  # noqa: S608 - our own words


def choose(
    waiting: Iterable[WaitingBackup], under_way: Iterable[UnderWay], limits: BackupLimits
) -> list[WaitingBackup]:
    """The backups that may begin, in the order given. Those before restores are counted apart: a tenant who is shut out
    waits for no dump that gives way to others."""
    of_team: Counter[tuple[bool, str, int]] = Counter()
    of_host: Counter[tuple[bool, int]] = Counter()
    for group in under_way:
        of_team[group.in_restore, group.region, group.team_id] += group.number
        of_host[group.in_restore, group.host_id] += group.number
    chosen: list[WaitingBackup] = []
    databases: set[UUID] = set()
    for one in waiting:
        team, host = (one.in_restore, one.region, one.team_id), (one.in_restore, one.host_id)
        room = of_team[team] < limits.per_team and of_host[host] < limits.per_host
        if room and one.database not in databases and len(chosen) < _MOST:
            chosen.append(one)
            databases.add(one.database)
            of_team[team] += 1
            of_host[host] += 1
    return chosen


async def admit_waiting(limits: BackupLimits) -> int:
    """Admits the backups that may begin, and returns how many there were. The relay starts their workflows."""
    async with transaction():
        if not await _lock():
            return 0
        waiting = await _find_waiting(limits)
        chosen = choose(waiting, await _count_under_way(), limits) if waiting else []
        for one in chosen:
            await _admit(one, relayed=True)
        return len(chosen)


async def try_admit(record: BackupRecord, limits: BackupLimits) -> PendingStart | None:
    """Admits a backup that was just asked for, if no other one could begin and there is room, in the transaction that
    wrote it. Returns the workflow to start after the commit, or None."""
    if not await _lock():
        return None
    waiting = await _find_waiting(limits)
    if [one.uuid for one in waiting] != [record.uuid]:
        return None
    chosen = choose(waiting, await _count_under_way(), limits)
    return await _admit(chosen[0], relayed=False) if chosen else None


async def _find_waiting(limits: BackupLimits) -> list[WaitingBackup]:
    """The backups that can begin as far as their team and their host alone are concerned, in the order of their
    turns."""
    return await fetch_all(WaitingBackup, _WAITING, limits.per_team, limits.per_host)


async def _count_under_way() -> list[UnderWay]:
    return await fetch_all(UnderWay, _UNDER_WAY)


async def _lock() -> bool:
    return await fetch_scalar(bool, "SELECT pg_try_advisory_xact_lock($1)", _LOCK)


async def _admit(one: WaitingBackup, *, relayed: bool) -> PendingStart | None:
    # The operation before the backup, as everything does that locks both.
    operation = await open_of_workflow(backup_workflow_id(one.uuid))
    admitted = await execute(
        "UPDATE backups SET admitted_at = now(), changed_at = now()"
        " WHERE uuid = $1 AND status = 'pending' AND admitted_at IS NULL",
        one.uuid,
    )
    if not admitted:  # cancelled meanwhile
        return None
    if operation is not None:
        await progress.end_step(operation, QUEUE)
    return await request_start(
        BackupDatabase,
        backup_workflow_id(one.uuid),
        BackupDatabaseInput(
            database=one.database,
            engine=one.engine,
            region=one.region,
            team_id=one.team_id,
            backup=one.uuid,
            in_restore=one.in_restore,
            request_id=one.request_id,
        ),
        priority=one.priority,
        purpose=f"{one.kind.value.capitalize().replace('_', ' ')} backup: ",
        relayed=relayed,
    )
