"""The backups of all teams, for operators."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.core.errors import InvalidField, NotFound
from app.store.session import fetch_all, fetch_scalar, fetch_values

SHORTEST_PREFIX = 4
"""The fewest characters of a uuid that identify a backup."""


class BackupLine(msgspec.Struct, kw_only=True):
    """The most informative columns come first, because a narrow terminal shows only those."""

    uuid: UUID
    status: BackupStatus
    database: str
    team: str
    proof: ProofStatus
    stored_bytes: int | None
    consistent_at: datetime | None
    kind: BackupKind
    expires_at: datetime | None
    error: str | None
    created_at: datetime
    database_uuid: UUID


class BackupFilters(msgspec.Struct, frozen=True, kw_only=True):
    """What the backups have to match. A None matches all."""

    team: str | None = None
    """A team's id or full name."""
    database: UUID | None = None
    status: BackupStatus | None = None
    kind: BackupKind | None = None
    proof: ProofStatus | None = None


class BackupTotal(msgspec.Struct, frozen=True):
    """The number of the matching backups, and what they take in the store."""

    number: int
    stored_bytes: int


_FROM = "FROM backups b JOIN teams t ON t.id = b.team_id"
_WHERE = """
WHERE ($1::text IS NULL OR t.name = $1 OR t.id::text = $1) AND ($2::uuid IS NULL OR b.database_uuid = $2)
  AND ($3::text IS NULL OR b.status = $3) AND ($4::text IS NULL OR b.kind = $4)
  AND ($5::text IS NULL OR b.proof_status = $5) AND ($3::text IS NOT NULL OR b.status <> 'deleted')
"""
_LINES = f"""
SELECT b.uuid, b.status, b.database_name AS database, t.name AS team, b.proof_status AS proof, b.stored_bytes,
       b.consistent_at, b.kind, b.expires_at, b.error, b.created_at, b.database_uuid
{_FROM} {_WHERE} ORDER BY b.id DESC LIMIT $6
"""
_TOTAL = f"SELECT count(*) AS number, coalesce(sum(b.stored_bytes), 0)::bigint AS stored_bytes {_FROM} {_WHERE}"


async def list_lines(filters: BackupFilters, limit: int | None = None) -> list[BackupLine]:
    """The matching backups, newest first; all of them when `limit` is None. Deleted ones only if the filter asks for
    that status."""
    return await fetch_all(BackupLine, _LINES, *_values(filters), limit)


async def total(filters: BackupFilters) -> BackupTotal:
    """How many backups match, and what they take in the store."""
    return (await fetch_all(BackupTotal, _TOTAL, *_values(filters)))[0]


async def resolve(reference: str) -> UUID:
    """Finds the backup by its uuid or the beginning of it. A complete uuid is returned as it is. Raises `NotFound`, and
    `InvalidField` when several match."""
    try:
        return UUID(reference)
    except ValueError:
        pass
    found = await fetch_values(
        UUID,
        "SELECT uuid FROM backups WHERE length($1) >= $2 AND starts_with(uuid::text, lower($1)) LIMIT 2",
        reference,
        SHORTEST_PREFIX,
    )
    if not found:
        raise NotFound("backup")
    if len(found) > 1:
        raise InvalidField("backup", f"{reference!r} means several backups; give more of the uuid.")
    return found[0]


async def team_name(team_id: int) -> str:
    """The name of a team that has backups."""
    sql = "SELECT t.name FROM backups b JOIN teams t ON t.id = b.team_id WHERE t.id = $1 LIMIT 1"
    return await fetch_scalar(str, sql, team_id)


def _values(filters: BackupFilters) -> tuple[Any, ...]:
    return (
        filters.team,
        filters.database,
        None if filters.status is None else filters.status.value,
        None if filters.kind is None else filters.kind.value,
        None if filters.proof is None else filters.proof.value,
    )
