"""Waiting, after the commit, for the end of a backup or of its restore test."""

from app.backups import records
from app.backups.records import BackupRecord
from app.contracts.backups import ProofStatus
from app.store.notify import RowWatch


async def await_end(watch: RowWatch, record: BackupRecord, timeout: float) -> BackupRecord:
    """The backup as it is at its end, or after `timeout` seconds."""

    async def look() -> BackupRecord | None:
        seen = await records.find(record.uuid)
        return None if seen is None or seen.under_way else seen

    if not record.under_way or timeout <= 0:
        return record
    return await watch.wait_for(record.database, look, timeout) or await records.find(record.uuid) or record


async def await_restore_test(watch: RowWatch, record: BackupRecord, number: int, timeout: float) -> BackupRecord:
    """The backup as it is at the end of that restore test, or after `timeout` seconds."""

    async def look() -> BackupRecord | None:
        seen = await records.find(record.uuid)
        return seen if seen is not None and is_tested(seen, number) else None

    if is_tested(record, number) or timeout <= 0:
        return record
    return await watch.wait_for(record.database, look, timeout) or await records.find(record.uuid) or record


def is_tested(record: BackupRecord, number: int) -> bool:
    """Whether that restore test has ended."""
    under_way = record.proof_status in (ProofStatus.PENDING, ProofStatus.RUNNING)
    return record.proof_number > number or record.over or not under_way
