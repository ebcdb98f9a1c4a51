"""Restore tests: asked for by clients, operators and the schedule, and what their rows say of them."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.backups import records
from app.backups.events import append_event
from app.backups.policies import BackupTerms, find_rules, schedule_test, schedule_tested
from app.backups.records import BackupRecord
from app.backups.restoring import ContentsDiffer, LoadReport
from app.contracts.backups import BackupStatus, ProofStatus, ProveBackup, ProveBackupInput
from app.contracts.queues import restore_test_workflow_id
from app.core.errors import BackupNotCompleted
from app.databases import records as databases
from app.databases.records import DatabaseRecord, NotWanted
from app.hosts.records import is_served
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import NORMAL, UPKEEP, PendingStart, request_start
from app.store.notify import announce
from app.store.session import execute, fetch_value, fetch_values, transaction

_MAX_ERROR = 1000
_NOT_SERVED = "No host serves its engine in its region any more."
_EVENTS = {
    ProofStatus.PROVEN: EventType.BACKUP_PROVEN,
    ProofStatus.MISMATCH: EventType.BACKUP_MISMATCH,
    ProofStatus.FAILED: EventType.BACKUP_TEST_FAILED,
}


class RequestedTest(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    """Which test of the backup it is."""
    start: PendingStart | None
    """None where that test is under way already, or has failed."""


async def request_test(terms: BackupTerms, record: BackupRecord, *, scheduled: bool = False) -> RequestedTest:
    """Has a backup tested whose row is locked, as its database's is; one whose test is under way is not tested twice.
    The relay begins a scheduled test. Where no host serves the backup's region, no worker does either: the test has
    failed then. Raises `BackupNotCompleted`."""
    if record.status is not BackupStatus.COMPLETED:
        raise BackupNotCompleted(record.status.value)
    if record.proof_status is ProofStatus.RUNNING:
        return RequestedTest(number=record.proof_number, start=None)
    number = record.proof_number + 1
    await execute(
        "UPDATE backups SET proof_status = 'running', proof_number = $2, proof_scheduled = $3,"
        " proof_changed_at = now(), proof_beat_at = NULL WHERE uuid = $1",
        record.uuid,
        number,
        scheduled,
    )
    test = ProveBackupInput(
        database=record.database,
        engine=record.engine,
        region=record.region,
        team_id=record.team_id,
        backup=record.uuid,
        number=number,
    )
    if not await is_served(record.engine, record.region):
        await note_failed(terms, test, _NOT_SERVED)
        return RequestedTest(number=number, start=None)
    start = await request_start(
        ProveBackup,
        restore_test_workflow_id(record.uuid, number),
        test,
        priority=UPKEEP if scheduled else NORMAL,
        purpose="Restore test of a backup: ",
        relayed=scheduled,
    )
    return RequestedTest(number=number, start=start)


_DUE = """
SELECT uuid FROM (
    SELECT d.uuid, p.test_at, row_number() OVER (PARTITION BY d.region ORDER BY p.test_at) + (
        SELECT count(*) FROM backups b
        WHERE b.region = d.region AND b.proof_status = 'running' AND b.status = 'completed'
          AND b.proof_scheduled) AS place
    FROM backup_policies p JOIN databases d ON d.id = p.database_id
    WHERE p.test_at <= now() AND d.uuid <> ALL ($2::uuid[])
) due WHERE place <= $3 ORDER BY test_at LIMIT $1
"""


async def find_due_tests(most: int, at_once: int, *, without: list[UUID]) -> list[UUID]:
    """The databases, deleted ones too, of which a restore test is due, the longest due first, except those of
    `without`: as many as there is room for, with `at_once` tests in a region. Tests that somebody asked for take none
    of these places: each team's bound limits them. Nor does a test whose backup is gone: it ends by itself, and its row
    stays as it was."""
    return await fetch_values(UUID, _DUE, most, without, at_once)


async def request_due_test(terms: BackupTerms, database: UUID) -> bool:
    """Has the database's newest backup tested, where a test is due; returns whether one begins. The end of the test
    says when the next is due."""
    async with transaction():
        subject = await databases.find_for_update(database)
        if subject is None:
            return False
        due = await execute(
            "UPDATE backup_policies SET test_at = NULL WHERE database_id = $1 AND test_at <= now()", subject.id
        )
        newest = await records.find_newest(subject.id) if due else None
        record = None if newest is None else await records.find_for_update(newest.uuid)
        if record is None or record.status is not BackupStatus.COMPLETED:
            return False
        return (await request_test(terms, record, scheduled=True)).start is not None


async def expect_wanted(test: ProveBackupInput) -> BackupRecord:
    """The backup that is to be tested. Raises `NotWanted` when it is gone, or the test has ended."""
    return _check_wanted(test, await records.find(test.backup))


async def begin_test(test: ProveBackupInput) -> None:
    """Locks the backup. Raises `NotWanted` as `expect_wanted`."""
    _check_wanted(test, await records.find_for_update(test.backup))


def _check_wanted(test: ProveBackupInput, record: BackupRecord | None) -> BackupRecord:
    if record is None or record.status is not BackupStatus.COMPLETED:
        raise NotWanted("the backup is not, or no longer, one that can be restored")
    if record.proof_number != test.number or record.proof_status is not ProofStatus.RUNNING:
        raise NotWanted("the restore test has ended")
    return record


async def find_scratch(backup: UUID) -> UUID | None:
    """The database that the backup's last test restored into."""
    return await fetch_value(
        UUID, "SELECT d.uuid FROM backups b JOIN databases d ON d.id = b.scratch_id WHERE b.uuid = $1", backup
    )


async def keep_scratch(backup: UUID, scratch: DatabaseRecord) -> None:
    """Records the scratch database of the backup's test, in the transaction that makes its row."""
    await execute("UPDATE backups SET scratch_id = $2, proof_beat_at = now() WHERE uuid = $1", backup, scratch.id)


async def note_sign_of_life(test: ProveBackupInput) -> bool:
    """Records a sign of life of the test; False when the test is over."""
    return bool(
        await execute(
            "UPDATE backups SET proof_beat_at = now() WHERE uuid = $1 AND proof_number = $2"
            " AND proof_status = 'running' AND status = 'completed'",
            test.backup,
            test.number,
        )
    )


async def note_proven(terms: BackupTerms, test: ProveBackupInput, report: LoadReport) -> None:
    """Records that what came back is equal to what was backed up."""
    await _finish(
        terms,
        test,
        ProofStatus.PROVEN,
        "proven_at = now(), restore_seconds = $3, proof_tables = $4, proof_rows = $5, proof_differences = NULL,"
        " proof_error = NULL",
        report.seconds,
        report.tables,
        report.rows,
    )


async def note_mismatch(terms: BackupTerms, test: ProveBackupInput, found: ContentsDiffer) -> None:
    """Records that something else came back than what was backed up."""
    encoded = msgspec.json.encode(found.differences).decode()
    changes = "proof_differences = $3::jsonb, proof_error = NULL, proof_tables = NULL, proof_rows = NULL"
    await _finish(terms, test, ProofStatus.MISMATCH, changes, encoded)


async def note_failed(terms: BackupTerms, test: ProveBackupInput, error: str) -> None:
    """Records that the test could not be run to its end. `error` is for the backup's team."""
    await _finish(terms, test, ProofStatus.FAILED, "proof_error = $3, proof_differences = NULL", error[:_MAX_ERROR])


async def note_trouble(test: ProveBackupInput, error: str) -> None:
    """Records what the last attempt met, for `give_up`."""
    await execute(
        "UPDATE backups SET proof_error = $3, proof_beat_at = NULL WHERE uuid = $1 AND proof_number = $2"
        " AND proof_status = 'running'",
        test.backup,
        test.number,
        error[:_MAX_ERROR],
    )


async def give_up(terms: BackupTerms, test: ProveBackupInput) -> None:
    """Records that the test failed: as many attempts have failed as are made."""
    record = await records.find(test.backup)
    error = record.proof_error if record is not None else None
    await note_failed(terms, test, error or "The worker that was at it stopped.")


async def _finish(
    terms: BackupTerms, test: ProveBackupInput, status: ProofStatus, changes: str, *arguments: str | float | datetime
) -> None:
    """Ends the test, once: a test that has ended stays as it is."""
    async with transaction():
        await databases.find_for_update(test.database)
        record = await records.find_for_update(test.backup)
        if record is None or record.proof_number != test.number or record.proof_status is not ProofStatus.RUNNING:
            return
        await execute(
            f"UPDATE backups SET proof_status = $2, proof_changed_at = now(), proof_beat_at = NULL, {changes}"  # noqa: S608
            " WHERE uuid = $1",
            test.backup,
            status.value,
            *arguments,
        )
        if record.database_id is not None:
            rules = await find_rules(terms.plans, record.database_id, record.plan)
            if rules.enabled:
                await schedule_tested(terms, record.database_id, rules)
            else:
                await schedule_test(record.database_id, None)
        await append_event(_EVENTS[status], test.backup)
        await announce(record.database)
