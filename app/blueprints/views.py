"""From a blueprint's row to what a client sees of it."""

from msgspec import UNSET

from app.blueprints.records import BlueprintRecord
from app.blueprints.schemas import BlueprintView


def view(record: BlueprintRecord, sql: str | None = None) -> BlueprintView:
    """`sql` for a single get."""
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
