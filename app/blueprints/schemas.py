"""The shapes of blueprints on the wire. Interface specification, sections 2.4, 2.9 and 4.12."""

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.contracts.base import Engine
from app.core.clock import Moment

MOST_CHARACTERS = 1024 * 1024
"""Of a blueprint's SQL."""


class SqlEncoding(StrEnum):
    """How a request writes its SQL. What is saved is text."""

    TEXT = "text"
    BASE64 = "base64"
    """RFC 4648, section 4: for a MySQL dump whose binary strings are no text. They become hexadecimal ones."""


BlueprintName = Annotated[
    str, Meta(pattern=r"\A[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?\Z", min_length=1, max_length=255)
]
"""One line of text, without blanks at its ends."""
Description = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z", max_length=10_000)]
SqlContent = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z", min_length=1, max_length=MOST_CHARACTERS)]
Variables = dict[str, dict[str, Any]]
"""Definitions of variables by their names: `{"type", "default"?, "required"?, "pattern"?, "min"?, "max"?,
"max_length"?, "values"?, "secret"?}`."""


class CreateBlueprint(Struct, kw_only=True, forbid_unknown_fields=True):
    name: BlueprintName
    sql_content: SqlContent
    sql_encoding: SqlEncoding = SqlEncoding.TEXT
    description: Description | None = None
    variables: Variables | None = None


class UpdateBlueprint(Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes of a blueprint. A field that is left out stays as it is."""

    name: BlueprintName | UnsetType = UNSET
    sql_content: SqlContent | UnsetType = UNSET
    sql_encoding: SqlEncoding = SqlEncoding.TEXT
    description: Description | UnsetType | None = UNSET
    variables: Variables | UnsetType | None = UNSET


class ValidateBlueprint(Struct, kw_only=True, forbid_unknown_fields=True):
    sql_content: SqlContent
    sql_encoding: SqlEncoding = SqlEncoding.TEXT
    variables: Variables | None = None
    """Definitions to check the SQL with. Without them every placeholder counts as declared."""


class Metadata(Struct, frozen=True, kw_only=True):
    """What the last validation found. `statements_left_out` counts statements that applying doesn't run."""

    dialects: list[Engine]
    statement_count: int
    extensions: list[str]
    statements_left_out: int = 0


class BlueprintView(Struct, kw_only=True):
    object: Literal["blueprint"] = "blueprint"
    uuid: UUID
    name: str
    slug: str
    description: str | None
    content_type: Literal["sql"] = "sql"
    version: int
    size_bytes: int
    is_system_blueprint: bool
    variables: dict[str, Any] | None
    metadata: Metadata | None
    sql_content: str | UnsetType = UNSET
    """On single get only."""
    created_at: Moment
    updated_at: Moment


class BlueprintVersionView(Struct, kw_only=True):
    """One version of a blueprint's SQL, which never changes; `variables` are the definitions that it has now."""

    object: Literal["blueprint_version"] = "blueprint_version"
    blueprint_uuid: UUID
    version: int
    size_bytes: int
    variables: dict[str, Any] | None
    metadata: Metadata | None
    sql_content: str | UnsetType = UNSET
    """On single get only."""
    created_at: Moment


class DeletedBlueprint(Struct, kw_only=True):
    uuid: UUID
    deleted: bool = True
