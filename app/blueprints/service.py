"""What clients and the operator do to blueprints. Every function that changes something belongs in a transaction of
the caller's."""

import asyncio
import re
import unicodedata
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from app.audit.drafts import note_difference
from app.auth.principal import Principal
from app.auth.teams import get_team
from app.blueprints import records
from app.blueprints.checking import check
from app.blueprints.records import BlueprintRecord, encoded
from app.blueprints.schemas import CreateBlueprint, Metadata, UpdateBlueprint
from app.core.errors import InvalidField, SystemBlueprint, TeamLimitReached, require_found
from app.core.ids import new_uuid
from app.hosts.records import offered_extensions
from app.outbox.workflow_starts import Accepted
from app.quotas.bounds import Bound, check_bound
from app.quotas.plans import Plans
from app.store.session import execute, fetch_scalar, fetch_values

BLUEPRINTS = Bound(
    resource="blueprints",
    counted="SELECT count(*) FROM blueprints WHERE team_id = $1 AND deleted_at IS NULL",
    refusal=TeamLimitReached,
)
VERSIONS = Bound(
    resource="blueprint_versions",
    counted="SELECT count(*) FROM blueprint_versions v JOIN blueprints b ON b.id = v.blueprint_id"
    " WHERE b.team_id = $1 AND b.id = $2",
    refusal=TeamLimitReached,
)


async def create(plans: Plans, principal: Principal, request: CreateBlueprint) -> Accepted:
    """Raises `BlueprintInvalid`, `InvalidField` naming a variable, or `TeamLimitReached`."""
    team_id = principal.owning_team(None, "blueprint")
    metadata = await asyncio.to_thread(check, request.sql_content, request.variables, await offered_extensions())
    await check_bound(plans, BLUEPRINTS, team_id)
    slug = await _free_slug(request.name, team_id)
    uuid = new_uuid()
    blueprint_id = await fetch_scalar(
        int,
        """
        INSERT INTO blueprints (uuid, team_id, created_by_id, is_system, name, slug, description, version)
        VALUES ($1, $2, $3, false, $4, $5, $6, 1) RETURNING id
        """,
        uuid,
        team_id,
        principal.user_id,
        request.name,
        slug,
        request.description,
    )
    await _add_version(blueprint_id, 1, request.sql_content, request.variables, metadata)
    return Accepted(subject=str(uuid))


async def get(principal: Principal, blueprint: UUID) -> BlueprintRecord:
    """Raises `NotFound`."""
    return require_found(await records.find_visible(blueprint, principal.team_ids), "blueprint")


async def list_page(
    principal: Principal, *, starting_after: UUID | None, limit: int
) -> tuple[list[BlueprintRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is unknown or not the
    caller's; that of a blueprint deleted since still works."""
    page = await records.list_visible(principal.team_ids, after=starting_after, limit=limit + 1)
    if not page and starting_after is not None and not await records.was_visible(starting_after, principal.team_ids):
        raise InvalidField("starting_after", "This is not the uuid of a blueprint that you can see.")
    return page[:limit], len(page) > limit


async def update(plans: Plans, principal: Principal, blueprint: UUID, change: UpdateBlueprint) -> None:
    """New SQL makes a new version; the earlier ones stay. Raises `NotFound`, `SystemBlueprint`, `BlueprintInvalid`,
    `InvalidField` or `TeamLimitReached`."""
    record = await _own_for_update(principal, blueprint)
    await _change_content(plans, record, change.sql_content, change.variables)
    name = record.name if change.name is UNSET else change.name
    assert record.team_id is not None, "a blueprint without a team is a system blueprint"
    slug = record.slug if name == record.name else await _free_slug(name, record.team_id, but=record.id)
    note_difference({"name": record.name}, {"name": name})
    await execute(
        "UPDATE blueprints SET name = $2, slug = $3, description = $4, updated_at = now() WHERE id = $1",
        record.id,
        name,
        slug,
        record.description if change.description is UNSET else change.description,
    )


async def delete(principal: Principal, blueprint: UUID) -> None:
    """Hides the blueprint. The SQL of versions that no application ran is deleted, that of the others with their last
    application. Raises `NotFound` or `SystemBlueprint`."""
    record = await _own_for_update(principal, blueprint, "FOR UPDATE")
    await records.forget_unused(record.id)
    await execute("UPDATE blueprints SET deleted_at = now(), updated_at = now() WHERE id = $1", record.id)


async def publish(name: str, sql: str, *, description: str | None, variables: dict[str, Any] | None) -> BlueprintRecord:
    """Makes the system blueprint of that name, or brings it up to date, with a new version where its SQL is another.
    Raises `BlueprintInvalid` or `InvalidField`."""
    # Of two callers that publish at once, the second finds what the first has made.
    await execute("SELECT pg_advisory_xact_lock(hashtextextended('headwater system blueprints', 0))")
    record = await records.find_system(slug_of(name))
    if record is None:
        metadata = await asyncio.to_thread(check, sql, variables, await offered_extensions())
        blueprint_id = await fetch_scalar(
            int,
            "INSERT INTO blueprints (uuid, is_system, name, slug, description, version)"
            " VALUES ($1, true, $2, $3, $4, 1) RETURNING id",
            new_uuid(),
            name,
            slug_of(name),
            description,
        )
        await _add_version(blueprint_id, 1, sql, variables, metadata)
    elif (await records.sql_of(record.id, record.version), record.variables, record.name, record.description) != (
        sql,
        variables,
        name,
        description,
    ):
        await _change_content(None, record, sql, variables)
        await execute(
            "UPDATE blueprints SET name = $2, description = $3, updated_at = now() WHERE id = $1",
            record.id,
            name,
            description,
        )
    published = await records.find_system(slug_of(name))
    assert published is not None, "it was written in this transaction"
    return published


async def _own_for_update(
    principal: Principal, blueprint: UUID, lock: records.Lock = "FOR NO KEY UPDATE"
) -> BlueprintRecord:
    record = require_found(await records.find_visible(blueprint, principal.team_ids, lock=lock), "blueprint")
    if record.is_system:
        raise SystemBlueprint("System blueprints can't be changed or deleted.")
    return record


async def _change_content(
    plans: Plans | None,
    record: BlueprintRecord,
    sql: str | msgspec.UnsetType,
    variables: dict[str, dict[str, Any]] | msgspec.UnsetType | None,
) -> None:
    """`plans` limit the versions of a team's blueprint; a system blueprint has no limit."""
    if sql is UNSET and variables is UNSET:
        return
    present = await records.sql_of(record.id, record.version)
    new_sql = present if sql is UNSET else sql
    new_variables = record.variables if variables is UNSET else variables
    metadata = await asyncio.to_thread(check, new_sql, new_variables, await offered_extensions())
    if new_sql != present:
        if plans is not None and record.team_id is not None:
            await check_bound(plans, VERSIONS, record.team_id, record.id)
        await _add_version(record.id, record.version + 1, new_sql, new_variables, metadata)
        await execute("UPDATE blueprints SET version = version + 1 WHERE id = $1", record.id)
        return
    await execute(
        "UPDATE blueprint_versions SET variables = $3::jsonb, metadata = $4::jsonb"
        " WHERE blueprint_id = $1 AND version = $2",
        record.id,
        record.version,
        encoded(new_variables),
        encoded(metadata),
    )


async def _add_version(
    blueprint_id: int, version: int, sql: str, variables: dict[str, Any] | None, metadata: Metadata
) -> None:
    await execute(
        """
        INSERT INTO blueprint_versions (blueprint_id, version, sql_content, size_bytes, variables, metadata)
        VALUES ($1, $2, $3, $4, $5::jsonb, $6::jsonb)
        """,
        blueprint_id,
        version,
        sql,
        len(sql.encode()),
        encoded(variables),
        encoded(metadata),
    )


async def _free_slug(name: str, team_id: int, *, but: int | None = None) -> str:
    """A slug that no other blueprint of the team has. Locks the team, so that two callers at once don't take the
    same."""
    await get_team(team_id, lock=True)
    taken = await fetch_values(
        str,
        "SELECT slug FROM blueprints WHERE team_id = $1 AND deleted_at IS NULL AND id IS DISTINCT FROM $2"
        " AND starts_with(slug, $3)",
        team_id,
        but,
        slug_of(name),
    )
    return free_slug(name, set(taken))


_LONGEST = 60


def slug_of(name: str) -> str:
    """Lowercase ASCII letters, digits and hyphens; `blueprint` for a name that has none of them."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:_LONGEST].rstrip("-") or "blueprint"


def free_slug(name: str, taken: set[str]) -> str:
    """The name's slug, numbered from 2 on when others have it."""
    slug, number = slug_of(name), 1
    candidate = slug
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate
