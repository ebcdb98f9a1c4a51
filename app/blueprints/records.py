"""A blueprint's row with its present version, as everything above the tables reads it."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from app.audit.drafts import found
from app.blueprints.schemas import Metadata
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar, fetch_values
from app.store.tables.blueprints import Blueprint


class BlueprintRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `blueprints`, joined with `blueprint_versions`; not the SQL itself, which may be large."""

    id: int
    uuid: UUID
    team_id: int | None
    is_system: bool
    name: str
    slug: str
    description: str | None
    version: int
    size_bytes: int
    variables_json: str | None
    metadata_json: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def variables(self) -> dict[str, Any] | None:
        return decoded(self.variables_json)

    @property
    def metadata(self) -> Metadata | None:
        """The result of validation when its SQL was saved."""
        return None if self.metadata_json is None else msgspec.json.decode(self.metadata_json, type=Metadata)


def decoded(text: str | None) -> dict[str, Any] | None:
    """A nullable JSON column."""
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def encoded(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


Lock = Literal["FOR KEY SHARE", "FOR NO KEY UPDATE", "FOR UPDATE"]

_COLUMNS = f"""
{columns_of(Blueprint, "b")}, v.size_bytes, v.variables::text AS variables_json, v.metadata::text AS metadata_json
"""
_JOIN = "JOIN blueprint_versions v ON v.blueprint_id = b.id AND v.version = b.version"
_SELECT = f"SELECT {_COLUMNS} FROM blueprints b {_JOIN}"  # noqa: S608 - our own words
_VISIBLE = "(b.team_id = any($2::bigint[]) OR b.is_system)"


async def find_visible(blueprint: UUID, team_ids: list[int], *, lock: Lock | None = None) -> BlueprintRecord | None:
    """The blueprint, if it is one of these teams' or everyone's, and not deleted. A `lock` holds one of these teams'
    until the end of the transaction: with `FOR KEY SHARE` nobody else deletes it, with `FOR NO KEY UPDATE` nobody else
    changes it, and with `FOR UPDATE` nobody else uses it."""
    if lock:
        # By itself, before the reading: a statement that has waited for another's new version doesn't see that version
        # yet, and would find none.
        await execute(
            f"SELECT 1 FROM blueprints b WHERE b.uuid = $1 AND b.team_id = any($2::bigint[]) {lock}",  # noqa: S608 - our own words
            blueprint,
            team_ids,
        )
    sql = f"{_SELECT} WHERE b.uuid = $1 AND {_VISIBLE} AND b.deleted_at IS NULL"
    return found(await fetch_one(BlueprintRecord, sql, blueprint, team_ids))


class SavedScript(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read of a blueprint when it is applied."""

    size_bytes: int
    variables_json: str | None
    short_sql: str | None
    """The SQL; None where it isn't short."""

    @property
    def variables(self) -> dict[str, Any] | None:
        return decoded(self.variables_json)


async def find_script(blueprint: UUID, team_ids: list[int], *, short_bytes: int) -> SavedScript | None:
    """The script of a blueprint that is one of these teams' or everyone's, with its SQL if that has fewer than
    `short_bytes`. Unlike `find_visible` it notes no team in the audit draft: the change may be about another team's
    database."""
    sql = f"""
    SELECT v.size_bytes, v.variables::text AS variables_json,
           CASE WHEN v.size_bytes < $3 THEN v.sql_content END AS short_sql
    FROM blueprints b {_JOIN} WHERE b.uuid = $1 AND {_VISIBLE} AND b.deleted_at IS NULL
    """  # noqa: S608 - our own words
    return await fetch_one(SavedScript, sql, blueprint, team_ids, short_bytes)


async def find(blueprint: UUID) -> BlueprintRecord | None:
    """The blueprint, of any team or everyone's, deleted or not."""
    return await fetch_one(BlueprintRecord, f"{_SELECT} WHERE b.uuid = $1", blueprint)


async def find_system(slug: str) -> BlueprintRecord | None:
    return await fetch_one(
        BlueprintRecord,
        f"{_SELECT} WHERE b.is_system AND b.slug = $1 AND b.deleted_at IS NULL",
        slug,
    )


async def sql_of(blueprint_id: int, version: int) -> str:
    """The SQL of any version of the blueprint."""
    return await fetch_scalar(
        str,
        "SELECT sql_content FROM blueprint_versions WHERE blueprint_id = $1 AND version = $2",
        blueprint_id,
        version,
    )


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `blueprint_versions`."""

    version: int
    size_bytes: int
    variables_json: str | None
    metadata_json: str | None
    created_at: datetime


_VERSION = """
SELECT version, size_bytes, variables::text AS variables_json, metadata::text AS metadata_json, created_at
FROM blueprint_versions WHERE blueprint_id = $1
"""


async def find_version(blueprint_id: int, version: int) -> VersionRecord | None:
    return await fetch_one(VersionRecord, f"{_VERSION} AND version = $2", blueprint_id, version)


async def list_versions(blueprint_id: int, *, after: int | None, limit: int) -> list[VersionRecord]:
    """The versions, newest first; those before `after` if it is given."""
    sql = f"{_VERSION} AND ($2::int IS NULL OR version < $2) ORDER BY version DESC LIMIT $3"
    return await fetch_all(VersionRecord, sql, blueprint_id, after, limit)


async def lock_deleted(blueprint_ids: Collection[int]) -> list[int]:
    """Locks these blueprints, and returns those that are deleted. Whoever deletes one of the others waits for the end
    of the transaction."""
    return await fetch_values(
        int,
        """
        WITH locked AS (
            SELECT id, deleted_at FROM blueprints WHERE id = any($1::bigint[]) ORDER BY id FOR NO KEY UPDATE
        )
        SELECT id FROM locked WHERE deleted_at IS NOT NULL ORDER BY id
        """,
        list(blueprint_ids),
    )


async def forget_unused(blueprint_id: int) -> None:
    """Deletes, of a blueprint that is deleted, or about to be and locked `FOR UPDATE`, the SQL that no application was
    made with. What is left of it has its name and numbers, no more."""
    used = "EXISTS (SELECT FROM blueprint_applications a WHERE a.blueprint_id = $1 AND a.blueprint_version = v.version)"
    present = "v.version = (SELECT version FROM blueprints WHERE id = $1)"
    await execute(
        f"DELETE FROM blueprint_versions v WHERE v.blueprint_id = $1 AND NOT {present} AND NOT {used}",  # noqa: S608
        blueprint_id,
    )
    await execute(
        "UPDATE blueprint_versions v SET sql_content = '', variables = NULL "  # noqa: S608 - our own words
        f"WHERE v.blueprint_id = $1 AND {present} AND NOT {used}",
        blueprint_id,
    )


async def list_visible(team_ids: list[int], *, after: UUID | None, limit: int) -> list[BlueprintRecord]:
    """The blueprints of these teams and everyone's, newest first, from the one that follows `after` on; none when
    `after` is not one of these."""
    return await fetch_all(BlueprintRecord, _PAGE, team_ids, after, limit)


async def was_visible(blueprint: UUID, team_ids: list[int]) -> bool:
    """Whether these teams see the blueprint, or saw it until it was deleted."""
    return await fetch_exists(
        "SELECT 1 FROM blueprints WHERE uuid = $1 AND (team_id = any($2::bigint[]) OR is_system)", blueprint, team_ids
    )


# Each branch is read off an index of its own: see `app.databases.records.PAGE`.
_PAGE = f"""
WITH cursor AS (
    SELECT CASE WHEN $2::uuid IS NULL THEN -9223372036854775807
                ELSE (SELECT -id FROM blueprints WHERE uuid = $2 AND (team_id = any($1) OR is_system)) END AS place
)
SELECT {_COLUMNS} FROM (
    (SELECT own.* FROM unnest($1::bigint[]) AS mine (team_id) CROSS JOIN LATERAL (
        SELECT * FROM blueprints
        WHERE team_id = mine.team_id AND deleted_at IS NULL AND -id > (SELECT place FROM cursor)
        ORDER BY -id LIMIT $3) own)
    UNION ALL
    (SELECT * FROM blueprints
     WHERE is_system AND deleted_at IS NULL AND -id > (SELECT place FROM cursor) ORDER BY -id LIMIT $3)
) b {_JOIN}
ORDER BY b.id DESC LIMIT $3
"""  # noqa: S608 - our own words
