"""From a blueprint's row to what a client sees of it."""

from uuid import UUID

import msgspec
from msgspec import UNSET

from app.blueprints.records import BlueprintRecord, VersionRecord, decoded
from app.blueprints.schemas import BlueprintVersionView, BlueprintView, Metadata


def view(record: BlueprintRecord, sql: str | None = None) -> BlueprintView:
    """A blueprint as a client sees it; `sql` is for a single get."""
    return BlueprintView(
        uuid=record.uuid,
        name=record.name,
        slug=record.slug,
        description=record.description,
        version=record.version,
        size_bytes=record.size_bytes,
        is_system_blueprint=record.is_system,
        variables=record.variables,
        metadata=record.metadata,
        sql_content=UNSET if sql is None else sql,
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def version_view(blueprint: UUID, record: VersionRecord, sql: str | None = None) -> BlueprintVersionView:
    """The same for one of its versions."""
    metadata = record.metadata_json
    return BlueprintVersionView(
        blueprint_uuid=blueprint,
        version=record.version,
        size_bytes=record.size_bytes,
        variables=decoded(record.variables_json),
        metadata=None if metadata is None else msgspec.json.decode(metadata, type=Metadata),
        sql_content=UNSET if sql is None else sql,
        created_at=record.created_at,
    )
