"""A new database that is to hold what its source holds: its acceptance."""

from uuid import UUID

from msgspec import UnsetType

from app.backups.restores import records
from app.backups.restores.records import NewRestoration
from app.backups.restores.sources import FoundSource
from app.contracts.restores import RestorationKind
from app.core.errors import TooManyUnderWay
from app.core.ids import new_uuid
from app.databases.records import DatabaseRecord
from app.databases.schemas import DatabaseSource
from app.operations.acceptance import accept
from app.operations.kinds import OperationType
from app.quotas.bounds import Bound

RESTORATIONS = Bound(resource="restorations", counted=records.COUNT_OPEN, refusal=TooManyUnderWay)
IN_PLACE_STEPS = ("end_access", "back_up", "exchange")
"""The steps of a restore that a new database doesn't have."""


def operation_type(source: DatabaseSource | UnsetType) -> OperationType:
    """The type of the operation that creates a database with this source, or with none."""
    if isinstance(source, UnsetType):
        return OperationType.CREATE
    return OperationType.CLONE if isinstance(source.database_uuid, UUID) else OperationType.RESTORE


async def accept_filling(source: FoundSource, record: DatabaseRecord, *, workflow_id: str) -> UUID:
    """Writes the restoration and its operation, in the transaction that wrote the database's row. Returns the
    restoration's uuid."""
    uuid = new_uuid()
    await records.insert(
        NewRestoration(
            uuid=uuid,
            database_id=record.id,
            kind=source.kind,
            backup_uuid=source.backup_uuid,
            source_id=source.source_id,
            pause_source=source.pause_source,
        )
    )
    clone = source.kind is RestorationKind.CLONE
    await accept(
        OperationType.CLONE if clone else OperationType.RESTORE,
        record,
        workflow_id=workflow_id,
        undo={},
        taken=1,
        without=() if clone else IN_PLACE_STEPS,
    )
    return uuid
