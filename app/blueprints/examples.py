"""One blueprint, for the API's description."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from app.blueprints.schemas import BlueprintView, DeletedBlueprint, ValidationView

EXAMPLE_BLUEPRINT_UUID = "c2a4d8f0-6b1e-4f7a-9d35-8e0b7a1c5f24"
EXAMPLE_SQL = "CREATE TABLE {{table}} (id integer PRIMARY KEY, note varchar(200) NOT NULL);\n"
EXAMPLE_VARIABLES: dict[str, Any] = {"table": {"type": "identifier", "default": "notes"}}
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
    metadata={"dialects": ["postgres", "mysql"], "statement_count": 1, "extensions": [], "statements_left_out": 0},
    created_at=_MADE_AT,
    updated_at=_MADE_AT,
)
"""As in a list: without its SQL."""

EXAMPLE_WHOLE_BLUEPRINT = msgspec.structs.replace(EXAMPLE_BLUEPRINT, sql_content=EXAMPLE_SQL)
EXAMPLE_DELETED_BLUEPRINT = DeletedBlueprint(uuid=UUID(EXAMPLE_BLUEPRINT_UUID))
EXAMPLE_VALIDATION = ValidationView(
    valid=True,
    statement_count=1,
    errors=[],
    warnings=[],
    manifest={
        "dialects": ["postgres", "mysql"],
        "statements": [{"index": 1, "line": 1, "kind": "CREATE TABLE", "object": "notes"}],
        "objects": {"tables": ["notes"]},
        "extensions": [],
        "variables": ["table"],
    },
)
EXAMPLE_REQUEST = {
    "name": "Notes",
    "description": "One table for short notes.",
    "sql_content": EXAMPLE_SQL,
    "variables": EXAMPLE_VARIABLES,
}
