"""Operations and the databases that they change: neither ends without the other.

Both end in one transaction, so a difference is damage, such as a row that was changed by hand. An operation whose
workflow is gone while its database is still in transition is no damage: `restarts` begins its workflow anew.
"""

from datetime import timedelta
from uuid import UUID

import msgspec

from app.databases import records as databases
from app.operations import records
from app.operations.ends import end
from app.operations.kinds import OperationStatus
from app.operations.reasons import ReasonCode
from app.store.session import fetch_all, fetch_one, transaction
from app.upkeep.reconcile.snapshot import PATIENCE

_MOST = 100

# `outcome` is how an open operation has to end, going by its database; null while the change is under way. That of a
# backup goes by the backup alone: the final one is taken of a database that is deleted.
_OUTCOMES = """
SELECT o.id, o.uuid, o.type, o.database_id, o.changed_at, d.uuid AS database, CASE
    WHEN o.type = 'create' AND d.status IN ('active', 'paused') THEN 'succeeded'
    WHEN o.type = 'delete' AND d.destroyed_at IS NOT NULL THEN 'succeeded'
    WHEN o.type = 'delete' AND d.status <> 'deleted' THEN 'undeleted'
    WHEN o.type = 'backup' THEN CASE b.status
        WHEN 'completed' THEN 'succeeded'
        WHEN 'expired' THEN 'succeeded'
        WHEN 'deleted' THEN 'succeeded'
        WHEN 'failed' THEN 'backup_failed'
        WHEN 'cancelled' THEN 'cancelled'
    END
    WHEN o.type <> 'delete' AND d.status = 'deleted' THEN 'database_deleted'
    WHEN o.type = 'limits' AND d.limits_applied >= o.revision THEN 'succeeded'
    WHEN o.type IN ('pause', 'resume', 'undelete') AND d.access_applied >= o.revision THEN 'succeeded'
    WHEN o.type = 'apply_blueprint' AND a.status IN ('completed', 'rolled_back') THEN 'succeeded'
    WHEN o.type = 'apply_blueprint' AND a.status = 'failed' THEN 'application_failed'
    WHEN o.type = 'rotate' AND r.proven_at IS NOT NULL THEN 'succeeded'
    WHEN o.type = 'rotate' AND r.status = 'cancelled' THEN 'cancelled'
END AS outcome
FROM operations o JOIN databases d ON d.id = o.database_id
LEFT JOIN blueprint_applications a ON a.id = (o.undo ->> 'application')::bigint
LEFT JOIN credential_rotations r ON r.uuid = (o.undo ->> 'rotation')::uuid
LEFT JOIN backups b ON b.uuid = CASE WHEN o.type = 'backup' THEN split_part(o.workflow_id, '/', 2)::uuid END
WHERE o.finished_at IS NULL
"""
ASTRAY = f"SELECT * FROM ({_OUTCOMES}) o WHERE outcome IS NOT NULL AND changed_at < now() - $1::interval"  # noqa: S608
"""Selects open operations whose change has been over for longer than `$1`."""
_OUTCOME = f"SELECT * FROM ({_OUTCOMES}) o WHERE id = $1 AND outcome IS NOT NULL"  # noqa: S608
_ENDS = {
    "succeeded": (OperationStatus.SUCCEEDED, None),
    "undeleted": (OperationStatus.CANCELLED, ReasonCode.UNDELETED),
    "database_deleted": (OperationStatus.CANCELLED, ReasonCode.DATABASE_DELETED),
    "cancelled": (OperationStatus.CANCELLED, ReasonCode.CANCELLED),
    "backup_failed": (OperationStatus.FAILED, ReasonCode.BACKUP_FAILED),
    "application_failed": (OperationStatus.FAILED, ReasonCode.APPLICATION_FAILED),
}


class _Astray(msgspec.Struct, frozen=True):
    id: int
    uuid: UUID
    type: str
    database_id: int
    database: UUID
    outcome: str


async def end_astray(patience: timedelta = PATIENCE) -> list[str]:
    """Ends open operations whose change is over. Returns a sentence for each."""
    found = await fetch_all(_Astray, f"{ASTRAY} ORDER BY id LIMIT {_MOST}", patience)
    return [sentence for one in found if (sentence := await _end(one)) is not None]


async def _end(found: _Astray) -> str | None:
    async with transaction():
        # The database first, as all do that change both.
        await databases.lock(found.database_id)
        record = await records.find(found.uuid, lock=True)
        astray = await fetch_one(_Astray, _OUTCOME, found.id)
        if record is None or astray is None:
            return None
        status, because = _ENDS[astray.outcome]
        await end(record, status, because=because)
    return f"Ended operation {found.uuid}, a {found.type} of database {found.database}, as {status.value}."
