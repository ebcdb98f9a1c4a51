"""An application's row, with its database and its statements, as everything above the tables reads it."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.blueprints.applications.schemas import LogEntry, StatementError, StatementStatus
from app.blueprints.records import BlueprintRecord, decoded
from app.contracts.applications import ApplicationStatus
from app.contracts.base import DatabaseStatus, Engine
from app.core.secrets import SecretLocation
from app.store.columns import columns_of
from app.store.sealed import SealedColumn
from app.store.session import fetch_all, fetch_exists, fetch_one, fetch_value, fetch_values
from app.store.tables.blueprints import BlueprintApplication, BlueprintStatement


class ApplicationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `blueprint_applications`, joined with its blueprint and database, and its statements counted.
    `definitions_json` and `values_sealed` are None in a list."""

    id: int
    blueprint_id: int
    blueprint_uuid: UUID
    blueprint_version: int
    database_id: int
    database: UUID
    database_name: str
    database_status: DatabaseStatus
    engine: Engine
    region: str
    team_id: int | None
    status: ApplicationStatus
    is_dry_run: bool
    at_creation: bool
    definitions_json: str | None
    shown_json: str | None
    values_sealed: bytes | None
    statements_total: int
    statements_succeeded: int
    statements_failed: int
    attempt: int
    losses: int
    session_reference: str | None
    scratch_name: str | None
    error_message: str | None
    total_duration_ms: int | None
    started_at: datetime | None
    completed_at: datetime | None
    created_at: datetime

    @property
    def definitions(self) -> dict[str, Any] | None:
        return decoded(self.definitions_json)


class _EntryRow(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    line: int
    kind: str
    sql: str
    status: StatementStatus
    rows: int | None
    duration_ms: int | None
    error_code: str | None
    error_message: str | None
    note: str | None


_COLUMNS = f"""
{columns_of(BlueprintApplication, "a", without=("definitions", "shown_values", "values_sealed"))},
       a.shown_values::text AS shown_json, b.uuid AS blueprint_uuid,
       d.uuid AS database, d.name AS database_name, d.status AS database_status, d.engine, d.region, d.team_id, s.*
"""
_JOINED = """
FROM blueprint_applications a
JOIN blueprints b ON b.id = a.blueprint_id
JOIN databases d ON d.id = a.database_id
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'succeeded') AS statements_succeeded,
           count(*) FILTER (WHERE status = 'failed') AS statements_failed
    FROM blueprint_statements WHERE application_id = a.id
) s
"""
_SELECT = f"SELECT a.definitions::text AS definitions_json, a.values_sealed, {_COLUMNS} {_JOINED}"
# What an application is run with may be large, and no list shows it.
_LIST = f"SELECT NULL::text AS definitions_json, NULL::bytea AS values_sealed, {_COLUMNS} {_JOINED}"
# Of a blueprint, the page is chosen before anything is joined to it or counted.
_PAGE = f"{_LIST} WHERE a.id = any(ARRAY({{ids}})) ORDER BY a.id DESC"
_BEFORE = "coalesce($3::bigint, 9223372036854775807)"
# Each in the order of an index that no other one has. How many rows the inner LIMIT leaves is hidden from the planner:
# where it believes that all of them are to be read, it may sort instead.
_NEWEST_OF_BLUEPRINT = _PAGE.format(
    ids=f"""
    SELECT one.id FROM (
        SELECT id, database_id, 0 - id AS turn FROM blueprint_applications
        WHERE blueprint_id = $1 AND 0 - id > 0 - {_BEFORE} ORDER BY 0 - id LIMIT (SELECT $5::bigint)
    ) one
    CROSS JOIN LATERAL (
        SELECT 1 FROM databases WHERE id = one.database_id AND team_id = any($2::bigint[]) OFFSET 0
    ) mine
    ORDER BY one.turn LIMIT $4
    """  # noqa: S608 - our own words, as below
)
_OF_BLUEPRINT_BY_DATABASE = _PAGE.format(
    ids=f"""
    SELECT one.id FROM databases mine
    CROSS JOIN LATERAL (
        SELECT id FROM blueprint_applications
        WHERE database_id = mine.id AND blueprint_id = $1 AND -id > -{_BEFORE} ORDER BY -id LIMIT $4
    ) one
    WHERE mine.team_id = any($2::bigint[]) AND ($5::uuid[] IS NULL OR mine.uuid = any($5::uuid[]))
    ORDER BY one.id DESC LIMIT $4
    """  # noqa: S608
)
_MOST_OF_OTHERS = 10_000
"""How many of the newest applications of a blueprint that everybody has are looked at for those of some teams."""
_STATEMENTS = f"SELECT {columns_of(BlueprintStatement, 's')} FROM blueprint_statements s"  # noqa: S608 - our own words


async def find(application: int) -> ApplicationRecord | None:
    """The application, of any team."""
    return await fetch_one(ApplicationRecord, f"{_SELECT} WHERE a.id = $1", application)


async def find_owned(application: int, team_ids: list[int]) -> ApplicationRecord | None:
    """The application, if it is to a database of these teams, deleted or not."""
    return await fetch_one(
        ApplicationRecord, f"{_SELECT} WHERE a.id = $1 AND d.team_id = any($2::bigint[])", application, team_ids
    )


async def team_of(application: int, team_ids: list[int]) -> int | None:
    """Which of these teams has the application's database."""
    return await fetch_value(
        int,
        "SELECT d.team_id FROM blueprint_applications a JOIN databases d ON d.id = a.database_id"
        " WHERE a.id = $1 AND d.team_id = any($2::bigint[])",
        application,
        team_ids,
    )


async def is_of_database(application: int, database_id: int) -> bool:
    return await fetch_exists(
        "SELECT 1 FROM blueprint_applications WHERE id = $1 AND database_id = $2", application, database_id
    )


async def is_of_blueprint(
    application: int, blueprint_id: int, team_ids: list[int], databases: list[UUID] | None
) -> bool:
    """Whether `list_of_blueprint` lists the application, on whatever page."""
    return await fetch_exists(
        "SELECT 1 FROM blueprint_applications a JOIN databases d ON d.id = a.database_id"
        " WHERE a.id = $1 AND a.blueprint_id = $2 AND d.team_id = any($3::bigint[])"
        " AND ($4::uuid[] IS NULL OR d.uuid = any($4::uuid[]))",
        application,
        blueprint_id,
        team_ids,
        databases,
    )


async def list_of_database(database_id: int, *, after: int | None, limit: int) -> list[ApplicationRecord]:
    """The applications to a database, newest first, from the one that follows `after` on."""
    return await fetch_all(
        ApplicationRecord,
        f"{_LIST} WHERE a.database_id = $1 AND ($2::bigint IS NULL OR a.id < $2) ORDER BY a.id DESC LIMIT $3",
        database_id,
        after,
        limit,
    )


async def list_of_blueprint(
    blueprint: BlueprintRecord, team_ids: list[int], databases: list[UUID] | None, *, after: int | None, limit: int
) -> list[ApplicationRecord]:
    """The blueprint's applications to databases of these teams, and to these `databases` unless None; newest first,
    from the one that follows `after` on. Where too few of the newest of all are theirs, they are looked for database by
    database, which costs as much as these teams have databases."""
    if databases is None:
        most = _MOST_OF_OTHERS if blueprint.is_system else None
        page = await fetch_all(ApplicationRecord, _NEWEST_OF_BLUEPRINT, blueprint.id, team_ids, after, limit, most)
        if most is None or len(page) == limit:
            return page
    return await fetch_all(
        ApplicationRecord, _OF_BLUEPRINT_BY_DATABASE, blueprint.id, team_ids, after, limit, databases
    )


async def find_at_creation(database: UUID) -> ApplicationRecord | None:
    """The application that the database was created with."""
    return await fetch_one(ApplicationRecord, f"{_SELECT} WHERE d.uuid = $1 AND a.at_creation", database)


async def find_next(database_id: int) -> ApplicationRecord | None:
    """The database's oldest application that has not ended: the one whose turn it is."""
    return await fetch_one(
        ApplicationRecord,
        f"{_SELECT} WHERE a.database_id = $1 AND a.completed_at IS NULL ORDER BY a.id LIMIT 1",
        database_id,
    )


async def open_of(database_id: int) -> list[ApplicationRecord]:
    """The database's applications that have not ended, in their order."""
    return await fetch_all(
        ApplicationRecord, f"{_LIST} WHERE a.database_id = $1 AND a.completed_at IS NULL ORDER BY a.id", database_id
    )


async def log_of(application: int) -> list[LogEntry]:
    """Every statement, in order; none before the application was started."""
    rows = await fetch_all(_EntryRow, f"{_STATEMENTS} WHERE application_id = $1 ORDER BY index", application)
    return [_entry(row) for row in rows]


def _entry(row: _EntryRow) -> LogEntry:
    error = None if row.error_message is None else StatementError(code=row.error_code, message=row.error_message)
    return LogEntry(
        index=row.index,
        line=row.line,
        kind=row.kind,
        sql=row.sql,
        status=row.status,
        rows=row.rows,
        duration_ms=row.duration_ms,
        error=error,
        note=row.note,
    )


async def scratch_names() -> list[str]:
    """The rehearsal copies that may be on hosts now: each application removes its own, also after a crash."""
    return await fetch_values(str, "SELECT scratch_name FROM blueprint_applications WHERE scratch_name IS NOT NULL")


def values_place(application: int) -> SecretLocation:
    """Where an application's variable values lie sealed."""
    return SecretLocation("blueprint_applications", "values_sealed", str(application))


SEALED_VALUES = SealedColumn(table="blueprint_applications", column="values_sealed", row="s.id::text")
