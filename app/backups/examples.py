"""Examples for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.backups.schemas import BackupPolicyView, BackupStorage, BackupView, DeletedBackup, Difference, ProofView
from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.contracts.base import Engine
from app.databases.examples import EXAMPLE_DATABASE

EXAMPLE_BACKUP_UUID = UUID("0b9f7c1d-6a32-4e0b-8f57-c41d2e9a7b60")
_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
_UNPROVEN = ProofView(
    status=ProofStatus.PENDING, proven_at=None, restore_seconds=None, tables=None, rows=None, differences=[]
)

EXAMPLE_UNDER_WAY = BackupView(
    uuid=EXAMPLE_BACKUP_UUID,
    database_uuid=EXAMPLE_DATABASE.uuid,
    database_name=EXAMPLE_DATABASE.name,
    team_id=1,
    db_type=Engine.POSTGRES,
    engine_version=None,
    kind=BackupKind.MANUAL,
    status=BackupStatus.PENDING,
    description="before the migration",
    consistent_at=None,
    size_bytes=None,
    stored_bytes=None,
    tables=None,
    rows=None,
    proof=_UNPROVEN,
    expires_at=None,
    error=None,
    created_at=_AT,
    completed_at=None,
)
EXAMPLE_BACKUP = msgspec.structs.replace(
    EXAMPLE_UNDER_WAY,
    engine_version="18.6",
    status=BackupStatus.COMPLETED,
    consistent_at=_AT.replace(second=1),
    size_bytes=52_428_800,
    stored_bytes=7_340_032,
    tables=12,
    rows=104_220,
    expires_at=_AT.replace(month=12),
    completed_at=_AT.replace(second=9),
)
EXAMPLE_PROVEN = msgspec.structs.replace(
    EXAMPLE_BACKUP,
    proof=ProofView(
        status=ProofStatus.PROVEN,
        proven_at=_AT.replace(hour=9),
        restore_seconds=4.2,
        tables=12,
        rows=104_220,
        differences=[],
    ),
)
EXAMPLE_BEING_TESTED = msgspec.structs.replace(
    EXAMPLE_BACKUP, proof=msgspec.structs.replace(_UNPROVEN, status=ProofStatus.RUNNING)
)
EXAMPLE_FAILED = msgspec.structs.replace(
    EXAMPLE_UNDER_WAY, status=BackupStatus.FAILED, error="The database's host can't be reached."
)
EXAMPLE_MISMATCH = msgspec.structs.replace(
    EXAMPLE_BACKUP,
    proof=ProofView(
        status=ProofStatus.MISMATCH,
        proven_at=None,
        restore_seconds=None,
        tables=12,
        rows=104_219,
        differences=[Difference(name="public.orders", kind="table", expected_rows=1200, restored_rows=1199)],
    ),
)
EXAMPLE_UNTESTED = msgspec.structs.replace(
    EXAMPLE_BACKUP,
    proof=msgspec.structs.replace(
        _UNPROVEN, status=ProofStatus.FAILED, error="No host that takes it has room for a restore test."
    ),
)
EXAMPLE_STORAGE = BackupStorage(team_id=1, backups=31, stored_bytes=48_318_382_080, limit_bytes=1_073_741_824_000)
EXAMPLE_DELETED_BACKUP = DeletedBackup(uuid=EXAMPLE_BACKUP_UUID)
EXAMPLE_POLICY = BackupPolicyView(
    database_uuid=EXAMPLE_DATABASE.uuid,
    enabled=True,
    every_hours=24,
    keep_days=7,
    keep_last=3,
    test_every_days=14,
    next_backup_at=datetime(2026, 11, 21, 3, 42, tzinfo=UTC),
    next_test_at=datetime(2026, 12, 4, 9, 0, tzinfo=UTC),
)
