"""The operation that an answer names beside its data: the one that its request accepted."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from app.operations.kinds import OperationType
from app.operations.records import COLUMNS, OperationRecord, find_of_workflow
from app.operations.schemas import OperationReference
from app.operations.views import reference
from app.store.session import fetch_one

_LATEST = f"""
SELECT {COLUMNS} FROM operations o JOIN databases d ON d.id = o.database_id
WHERE d.uuid = $1 AND o.type = $2 AND ($3::integer IS NULL OR o.revision = $3)
  AND ($4::bigint IS NULL OR (o.undo ->> 'application')::bigint = $4)
  AND ($5::text IS NULL OR o.undo ->> 'rotation' = $5)
ORDER BY o.id DESC LIMIT 1
"""  # noqa: S608 - our own words


async def accepted_on(
    database: UUID,
    type: OperationType,
    *,
    revision: int | None = None,
    application: int | None = None,
    rotation: UUID | None = None,
) -> OperationReference | UnsetType:
    """The newest operation of this type on the database: with this revision, or for this application of a blueprint
    or this rotation, where one is named. Unset for a change that was accepted before there were operations."""
    named = None if rotation is None else str(rotation)
    found = await fetch_one(OperationRecord, _LATEST, database, type.value, revision, application, named)
    return UNSET if found is None else reference(found)


async def accepted_by(database: UUID, workflow_id: str) -> OperationReference | UnsetType:
    """The newest operation on the database that this workflow, or a restart of it, works on."""
    found = await find_of_workflow(database, workflow_id)
    return UNSET if found is None else reference(found)
