"""`headwater databases`: what is there, whosever it is. Passwords are not shown."""

from datetime import datetime
from uuid import UUID

import msgspec
import rich_click as click

from app.cli.output import shown
from app.cli.running import settings, store
from app.contracts.queues import access_workflow_id
from app.core.errors import NotFound
from app.databases.records import DatabaseRecord
from app.databases.undeletion import undelete
from app.quotas import operator
from app.store.notify import RowWatch
from app.store.session import fetch_all


class DatabaseLine(msgspec.Struct, kw_only=True):
    uuid: UUID
    name: str
    team: str | None
    """None in the warm pool."""
    engine: str
    region: str
    plan: str
    status: str
    address: str
    created_at: datetime


class DatabaseDetails(DatabaseLine, kw_only=True):
    team_id: int | None
    host_id: int
    engine_name: str
    connections: int
    limits_revision: int
    limits_applied: int
    paused_reason: str | None
    """`operator`, `runtime` or `storage`; None for a paused one that is on its way back."""
    frozen_at: datetime | None
    """Since when it may read, delete and drop, and write nothing."""
    access_revision: int
    access_applied: int
    """The engine is as recorded when it has caught up with `access_revision`."""
    storage_bytes: int | None
    measured_at: datetime | None
    runtime_seconds: float | None
    """Of the month in which it was last measured."""
    remote_since: datetime | None
    provisioned_at: datetime | None
    deleted_at: datetime | None
    deletion_revision: int
    revoked_at: datetime | None
    destroy_at: datetime | None
    destroyed_at: datetime | None


_SELECT = """
SELECT d.*, t.name AS team, h.host || ':' || h.port AS address, u.storage_bytes, u.measured_at, u.runtime_seconds
FROM databases d LEFT JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
LEFT JOIN database_usage u ON u.database_id = d.id
"""
_APPLIED_SECONDS = 60.0
"""How long a command waits for the engine."""


@click.group()
def databases() -> None:
    """Databases of all teams."""


@databases.command("list")
@click.option("--all", "with_destroyed", is_flag=True, help="Also those of which nothing is left.")
@click.option("--pooled", is_flag=True, help="Those of the warm pool instead, which are no team's yet.")
@shown
async def list_databases(with_destroyed: bool, pooled: bool) -> list[DatabaseLine]:
    """Show the teams' databases, newest first."""
    async with store():
        return await fetch_all(
            DatabaseLine,
            f"{_SELECT} WHERE ($1 OR d.destroyed_at IS NULL) AND (d.team_id IS NULL) = $2 ORDER BY d.position DESC",
            with_destroyed,
            pooled,
        )


@databases.command("inspect")
@click.argument("uuid", type=click.UUID)
@shown
async def inspect_database(uuid: UUID) -> DatabaseDetails:
    """Show all that is recorded of one database."""
    async with store():
        return await _details(uuid)


@databases.command("pause")
@click.argument("uuid", type=click.UUID)
@shown
async def pause_database(uuid: UUID) -> DatabaseDetails:
    """End all connections to a database and let nobody in; its data and credentials stay."""
    async with store():
        return await _applied(await operator.pause(uuid))


@databases.command("resume")
@click.argument("uuid", type=click.UUID)
@shown
async def resume_database(uuid: UUID) -> DatabaseDetails:
    """Let a paused database's credentials work again, whatever it was paused for."""
    async with store():
        return await _applied(await operator.resume(uuid))


@databases.command("undelete")
@click.argument("uuid", type=click.UUID)
@shown
async def undelete_database(uuid: UUID) -> DatabaseDetails:
    """Bring a deleted database back while its data is kept, as it was: with its name, its data and its credentials."""
    async with store():
        return await _applied(await undelete(uuid))


async def _details(uuid: UUID) -> DatabaseDetails:
    found = await fetch_all(DatabaseDetails, f"{_SELECT} WHERE d.uuid = $1", uuid)
    if not found:
        raise NotFound("database")
    return found[0]


async def _applied(changed: DatabaseRecord) -> DatabaseDetails:
    """The database once its engine is as recorded. Raises `click.ClickException` when that takes too long."""

    async def look() -> DatabaseDetails | None:
        details = await _details(changed.uuid)
        return details if details.access_applied >= changed.access_revision else None

    dsn = settings().control_dsn
    assert dsn is not None, "the store is connected"
    async with RowWatch(dsn).running() as watch:
        details = await watch.wait_for(changed.uuid, look, _APPLIED_SECONDS)
    if details is None:
        raise click.ClickException(
            "It is recorded, but the engine has not followed yet. The work goes on: see the workflow "
            f"{access_workflow_id(changed.uuid, changed.access_revision)}."
        )
    return details
