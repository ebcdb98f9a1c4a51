"""What clients do to backups. Every function that changes something belongs in the request's transaction, and returns
the workflow that the change asks for, to be started after the commit."""

from uuid import UUID

import msgspec
from msgspec import UNSET

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.teams import get_team
from app.backups import policies, records
from app.backups.ends import lock
from app.backups.holds import expect_unneeded
from app.backups.policies import BackupTerms
from app.backups.records import BackupRecord
from app.backups.requests import request_backup
from app.backups.restore_tests import request_test
from app.backups.schemas import BackupStorage, ChangeBackupPolicy, TakeBackup
from app.backups.sources import BACKUP
from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.contracts.base import DatabaseStatus
from app.contracts.retries import CANCEL
from app.core.errors import (
    BackupInUse,
    BackupProtected,
    DatabaseNotActive,
    InvalidField,
    MissingRequiredField,
    NotFound,
    TeamLimitReached,
    TooManyUnderWay,
    require_found,
)
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.operations import ends
from app.operations.kinds import KINDS, OperationStatus
from app.operations.reasons import ReasonCode
from app.outbox.workflow_starts import Accepted, request_signal
from app.quotas.bounds import Bound, check_bound
from app.store.notify import announce
from app.store.session import execute

UNDER_WAY = Bound(
    resource="backups_under_way",
    counted="SELECT count(*) FROM backups WHERE team_id = $1 AND status IN ('pending', 'running') AND kind = 'manual'",
    refusal=TooManyUnderWay,
)
BACKUPS = Bound(
    resource="backups",
    counted="SELECT count(*) FROM backups WHERE team_id = $1 AND status IN ('pending', 'running', 'completed')",
    refusal=TeamLimitReached,
)
TESTS = Bound(
    resource="backup_tests",
    counted="SELECT count(*) FROM backups"
    " WHERE team_id = $1 AND proof_status = 'running' AND status = 'completed' AND NOT proof_scheduled",
    refusal=TooManyUnderWay,
)
STORED = Bound(
    resource="backup_storage_gb",
    counted="SELECT coalesce(sum(stored_bytes), 0) / 1073741824::double precision FROM backups"
    " WHERE team_id = $1 AND status = 'completed'",
    refusal=TeamLimitReached,
)


async def take(terms: BackupTerms, principal: Principal, database: UUID, request: TakeBackup) -> Accepted:
    """Asks for a backup of the database. The subject is the backup. Raises `NotFound`, `DatabaseNotActive`,
    `TooManyUnderWay` or `TeamLimitReached`."""
    found = await databases.get_owned(database, principal.team_ids)
    return await _take(terms, await databases.lock_with_team(found), request)


async def take_any(terms: BackupTerms, database: UUID, request: TakeBackup) -> Accepted:
    """The same for an operator, for a database of any team."""
    found = await databases.get_live(database)
    return await _take(terms, await databases.lock_with_team(found), request)


async def _take(terms: BackupTerms, target: DatabaseRecord, request: TakeBackup) -> Accepted:
    """Asks for the backup, with the team and the database locked. A paused database is backed up too: its data is
    there."""
    if target.status is DatabaseStatus.PROVISIONING:
        raise DatabaseNotActive(target.status.value)
    assert target.team_id is not None, "it is a team's"
    for bound in (UNDER_WAY, BACKUPS, STORED):
        await check_bound(terms.plans, bound, target.team_id)
    requested = await request_backup(
        target,
        BackupKind.MANUAL,
        description=request.description,
        keep_days=request.keep_days,
        limits=terms.limits,
    )
    return Accepted(subject=str(requested.record.uuid), start=requested.start)


async def get(principal: Principal, backup: UUID) -> BackupRecord:
    """Raises `NotFound`."""
    return require_found(await records.find_owned(backup, principal.team_ids), BACKUP)


async def get_any(backup: UUID) -> BackupRecord:
    """The backup, of any team and in whatever state. Raises `NotFound`."""
    return require_found(await records.find(backup), BACKUP)


async def list_page(
    principal: Principal, *, starting_after: UUID | None, limit: int
) -> tuple[list[BackupRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is unknown or not the
    caller's; that of a backup deleted since still works."""
    page = await records.list_owned(principal.team_ids, after=starting_after, limit=limit + 1)
    if not page and starting_after is not None and await records.team_of(starting_after, principal.team_ids) is None:
        raise InvalidField("starting_after", "This is not the uuid of a backup of yours.")
    return page[:limit], len(page) > limit


async def list_of_database(
    database: DatabaseRecord, *, starting_after: UUID | None, limit: int
) -> tuple[list[BackupRecord], bool]:
    """The same of one database."""
    page = await records.list_of_database(database.id, after=starting_after, limit=limit + 1)
    if not page and starting_after is not None and not await records.was_of_database(starting_after, database.id):
        raise InvalidField("starting_after", "This is not the uuid of a backup of this database.")
    return page[:limit], len(page) > limit


async def storage(terms: BackupTerms, principal: Principal, team_id: int) -> BackupStorage:
    """Raises `NotFound`."""
    if team_id not in principal.team_ids:
        raise NotFound("team")
    team, stored = await get_team(team_id, live=True), await records.stored_by(team_id)
    limit = terms.plans.tiers[team.tier].backup_storage_gb
    return BackupStorage(
        team_id=team_id, backups=stored.backups, stored_bytes=stored.stored_bytes, limit_bytes=int(limit * 2**30)
    )


async def delete(principal: Principal, backup: UUID, *, locked_in_store: bool = False) -> Accepted:
    """Deletes the backup: nothing can be restored from it any more, and its objects go from the store afterwards. A
    backup that is being taken for a client or by schedule is stopped. `locked_in_store`: whether Object Lock keeps
    backups until they expire. Raises `NotFound`, `BackupInUse`, `BackupBeingRestored` or `BackupProtected`."""
    await get(principal, backup)
    locked = await lock(backup)
    record, operation = locked.record, locked.operation
    if record.status is BackupStatus.DELETED:
        raise NotFound(BACKUP)
    if record.under_way and record.kind in (BackupKind.FINAL, BackupKind.BEFORE_RESTORE):
        raise BackupInUse(record.kind.value)
    await expect_unneeded(backup)
    if locked_in_store and record.expires_at is not None and record.expires_at > record.read_at:
        raise BackupProtected(record.expires_at)
    await execute("UPDATE backups SET status = 'deleted', changed_at = now() WHERE uuid = $1", backup)
    if operation is not None:
        await ends.end(operation, OperationStatus.CANCELLED, because=ReasonCode.CANCELLED)
        if operation.workflow_id is not None and record.admitted_at is not None:
            await request_signal(KINDS[operation.type].workflow, operation.workflow_id, CANCEL)
    await announce(record.database)
    return Accepted(subject=str(backup), settled=True)


async def change_policy(
    terms: BackupTerms, principal: Principal, database: UUID, wanted: ChangeBackupPolicy
) -> Accepted:
    """Raises `NotFound`, or `MissingRequiredField` when nothing is asked for."""
    if all(value is UNSET for value in msgspec.structs.astuple(wanted)):
        raise MissingRequiredField("enabled")
    record = await databases.get_owned(database, principal.team_ids, lock=True)
    await policies.change(terms, record, wanted)
    return Accepted(subject=str(database), settled=True)


async def test(terms: BackupTerms, principal: Principal, backup: UUID) -> Accepted:
    """Has the backup proven now; one whose test is under way is not tested twice. The subject is the backup with the
    number of the test: `read_test_subject` reads it. Raises `NotFound`, `BackupNotCompleted` or `TooManyUnderWay`."""
    found = await get(principal, backup)
    await get_team(found.team_id, lock=True)
    await databases.find_for_update(found.database)
    record = require_found(await records.find_for_update(backup), BACKUP)
    if record.proof_status is not ProofStatus.RUNNING:
        await check_bound(terms.plans, TESTS, record.team_id)
    return await _test(terms, record)


async def test_any(terms: BackupTerms, backup: UUID) -> Accepted:
    """The same for an operator, for a backup of any team."""
    found = await get_any(backup)
    note(team_id=found.team_id)
    await databases.find_for_update(found.database)
    return await _test(terms, require_found(await records.find_for_update(backup), BACKUP))


async def _test(terms: BackupTerms, record: BackupRecord) -> Accepted:
    requested = await request_test(terms, record)
    return Accepted(subject=f"{record.uuid}/{requested.number}", start=requested.start)


def read_test_subject(subject: str) -> tuple[UUID, int]:
    """The backup, and the number of its test."""
    backup, _, number = subject.partition("/")
    return UUID(backup), int(number)
