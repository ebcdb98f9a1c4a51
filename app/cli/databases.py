"""`headwater databases`: what is there, whosever it is. Passwords are not shown."""

from datetime import datetime
from uuid import UUID

import msgspec
import rich_click as click

from app.cli.output import shown
from app.cli.running import store
from app.core.errors import NotFound
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
    remote_since: datetime | None
    provisioned_at: datetime | None
    deleted_at: datetime | None
    revoked_at: datetime | None
    destroy_at: datetime | None
    destroyed_at: datetime | None


_SELECT = """
SELECT d.*, t.name AS team, h.host || ':' || h.port AS address
FROM databases d LEFT JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
"""


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
        found = await fetch_all(DatabaseDetails, f"{_SELECT} WHERE d.uuid = $1", uuid)
    if not found:
        raise NotFound("database")
    return found[0]
