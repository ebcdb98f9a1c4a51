"""Comparing our records of backups with the store, in both directions."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

from app.backups.storage.checking import CheckedBackup, check_backup
from app.backups.storage.store import BackupStore, StoredBackup, StrayObject
from app.backups.stored import StoredRecord, stored_record, stored_records
from app.upkeep.reconcile.findings import Report, Violation

MISSING = "backup_missing"
"""Our record says that the backup is complete, and the store doesn't have it."""
DAMAGED = "backup_damaged"
"""An object of the backup is gone, or isn't what was written."""
ASTRAY = "backup_astray"
"""The store has the backup although our record says that it is gone."""
UNRECORDED = "backup_unrecorded"
"""The store has the backup, and we have no record of it."""
STRAY = "backup_object_stray"
"""An object of no backup."""
_AT_ONCE = 4


async def verify_store(store: BackupStore, *, deep: bool = False) -> Report:
    """Reports the differences, and changes nothing. `deep` reads every object. Raises `StoreUnavailable` and
    `StoreRefused`."""
    violations, notes, seen = list[Violation](), list[Violation](), set[UUID]()
    async for page in _pages(store):
        checked = await asyncio.gather(*(_check(store, item, deep=deep) for item in page))
        for item, (wrong, noted) in zip(page, checked, strict=True):
            seen |= {item.backup} if isinstance(item, StoredBackup) else set()
            violations += wrong
            notes += noted
    async for record in stored_records():
        if record.kept and record.uuid not in seen:
            violations += await _missing(store, record.uuid)
    return Report(ok=not violations, violations=violations, notes=notes)


Found = tuple[list[Violation], list[Violation]]
"""Violations and notes."""


async def _pages(store: BackupStore) -> AsyncIterator[list[StoredBackup | StrayObject]]:
    page = list[StoredBackup | StrayObject]()
    async for item in store.walk():
        page.append(item)
        if len(page) == _AT_ONCE:
            yield page
            page = []
    yield page


async def _check(store: BackupStore, item: StoredBackup | StrayObject, *, deep: bool) -> Found:
    if isinstance(item, StrayObject):
        return await _check_stray(item)
    checked = await check_backup(store, item, deep=deep)
    # Read afterwards: a deletion may have begun meanwhile, which says so in our record first.
    record = await stored_record(item.backup)
    if record is not None and not record.kept and not record.under_way and not record.locked:
        return await _astray(store, record), []
    notes = [_violation(STRAY, name, "no object of its backup") for name in checked.strays]
    wrong = [_violation(DAMAGED, item.backup, str(damage)) for damage in checked.faults]
    wrong += _compared(record, item, checked)
    return wrong, notes


def _compared(record: StoredRecord | None, item: StoredBackup, checked: CheckedBackup) -> list[Violation]:
    if record is None:
        return [_violation(UNRECORDED, item.backup, _described(checked))]
    manifest = checked.manifest
    if manifest is None or not record.kept or manifest.stored_bytes == record.stored_bytes:
        return []
    said = f"its manifest says {manifest.stored_bytes} bytes, our record {record.stored_bytes}"
    return [_violation(DAMAGED, item.backup, said)]


async def _check_stray(item: StrayObject) -> Found:
    record = None if item.backup is None else await stored_record(item.backup)
    if record is not None and record.kept:
        return [], []  # the backup itself is missing, which is reported once
    if record is not None and record.under_way:
        return [], []
    return [], [_violation(STRAY, item.name, f"{item.length} bytes of {item.modified.isoformat()}")]


async def _missing(store: BackupStore, backup: UUID) -> list[Violation]:
    """The violation of a missing backup. Store and record are asked again: it may have been completed, or deleted,
    since the store was walked."""
    again = await store.find(backup)
    record = await stored_record(backup)
    if again is not None or record is None or not record.kept:
        return []
    return [_violation(MISSING, backup, "our record says that it is complete, and the store has no manifest of it")]


async def _astray(store: BackupStore, record: StoredRecord) -> list[Violation]:
    """The violation of a backup that should be gone. The store is asked again: it may have been removed while it was
    read."""
    if await store.find(record.uuid) is None:
        return []
    return [_violation(ASTRAY, record.uuid, f"the store has it, and our record says {record.status.value}")]


def _described(checked: CheckedBackup) -> str:
    manifest = checked.manifest
    if manifest is None:
        return "we have no record of it"
    return f"we have no record of it: {manifest.database_name} of team {manifest.team_id}, {manifest.kind}"


def _violation(rule: str, subject: UUID | str, detail: str) -> Violation:
    return Violation(rule=rule, subject=str(subject), detail=detail)
