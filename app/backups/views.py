"""From a backup's row to what a client sees of it."""

import msgspec

from app.backups.records import BackupRecord
from app.backups.schemas import BackupView, Difference, ProofView


def view(record: BackupRecord) -> BackupView:
    form = record.format
    return BackupView(
        uuid=record.uuid,
        database_uuid=record.database,
        database_name=record.database_name,
        team_id=record.team_id,
        db_type=record.engine,
        engine_version=None if form is None else form.server_version,
        kind=record.kind,
        status=record.status,
        description=record.description,
        consistent_at=record.consistent_at,
        size_bytes=record.size_bytes,
        stored_bytes=record.stored_bytes,
        tables=record.tables,
        rows=record.rows,
        proof=_proof(record),
        expires_at=record.expires_at,
        error=record.error,
        created_at=record.created_at,
        completed_at=record.completed_at,
    )


def _proof(record: BackupRecord) -> ProofView:
    return ProofView(
        status=record.proof_status,
        proven_at=record.proven_at,
        restore_seconds=record.restore_seconds,
        tables=record.proof_tables,
        rows=record.proof_rows,
        differences=msgspec.convert(record.proof_differences, list[Difference]),
        error=record.proof_error,
    )
