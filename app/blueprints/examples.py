"""One blueprint, for the API's description."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from app.blueprints.schemas import BlueprintVersionView, BlueprintView, DeletedBlueprint, Metadata
from app.blueprints.validation import Manifest, ManifestStatement, ManifestVariable, Validation
from app.contracts.base import Engine

EXAMPLE_BLUEPRINT_UUID = "c2a4d8f0-6b1e-4f7a-9d35-8e0b7a1c5f24"
EXAMPLE_SQL = "CREATE TABLE {{table}} (id integer PRIMARY KEY, note varchar(200) NOT NULL);\n"
EXAMPLE_VARIABLES: dict[str, Any] = {"table": {"type": "identifier", "required": True}}
_MADE_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)

EXAMPLE_BLUEPRINT = BlueprintView(
    uuid=UUID(EXAMPLE_BLUEPRINT_UUID),
    name="Notes",
    slug="notes",
    description="One table for short notes.",
    version=1,
    size_bytes=len(EXAMPLE_SQL),
    is_system_blueprint=False,
    variables=EXAMPLE_VARIABLES,
    metadata=Metadata(dialects=list(Engine), statement_count=1, extensions=[]),
    created_at=_MADE_AT,
    updated_at=_MADE_AT,
)
"""As in a list: without its SQL."""

EXAMPLE_WHOLE_BLUEPRINT = msgspec.structs.replace(EXAMPLE_BLUEPRINT, sql_content=EXAMPLE_SQL)
EXAMPLE_VERSION = BlueprintVersionView(
    blueprint_uuid=UUID(EXAMPLE_BLUEPRINT_UUID),
    version=1,
    size_bytes=len(EXAMPLE_SQL),
    variables=EXAMPLE_VARIABLES,
    metadata=EXAMPLE_BLUEPRINT.metadata,
    created_at=_MADE_AT,
)
EXAMPLE_WHOLE_VERSION = msgspec.structs.replace(EXAMPLE_VERSION, sql_content=EXAMPLE_SQL)
EXAMPLE_DELETED_BLUEPRINT = DeletedBlueprint(uuid=UUID(EXAMPLE_BLUEPRINT_UUID))
EXAMPLE_VALIDATION = Validation(
    valid=True,
    statement_count=1,
    errors=[],
    warnings=[],
    manifest=Manifest(
        dialects=list(Engine),
        statements=[
            ManifestStatement(
                index=1, line=1, kind="CREATE TABLE", object="{{table}}", object_type="table", left_out=None
            )
        ],
        objects={"tables": ["{{table}}"]},
        extensions=[],
        variables={"table": ManifestVariable(type=None, lines=[1])},
    ),
)
EXAMPLE_REQUEST = {
    "name": "Notes",
    "description": "One table for short notes.",
    "sql_content": EXAMPLE_SQL,
    "variables": EXAMPLE_VARIABLES,
}
