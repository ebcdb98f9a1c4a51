"""`headwater databases`: the databases of all teams. Passwords are not shown."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.drafts import note
from app.audit.events import change
from app.auth import teams
from app.backups import final
from app.cli.credentials import COMMANDS
from app.cli.installation import plans, row_watch, settings, store
from app.cli.metrics import metrics
from app.cli.output import shown
from app.cli.parameters import ENGINE, ENGINE_HELP, POSITIVE
from app.cli.tables import SHOWN, Rows, size_text
from app.contracts.base import DatabaseStatus, Engine
from app.contracts.queues import access_workflow_id, delete_workflow_id
from app.core.errors import InvalidField
from app.databases import inventory
from app.databases.filters import PLAN_NAMES, DatabaseFilters, check_regions
from app.databases.inventory import DatabaseCount, DatabaseDetails, Filters, Grouping, Sort
from app.databases.labels import parse_label
from app.databases.records import DatabaseRecord
from app.databases.schemas import ChangeDatabase
from app.hosts import records as hosts
from app.provisioning import operator, service
from app.provisioning.undeletion import undelete

_APPLIED_SECONDS = 60.0
"""How long a command waits for the engine."""


def _filtered(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that select databases to a command, which is called with `filters`."""
    options = (
        click.option("--team", help="Only databases of the team with this id or name."),
        click.option("--name", help="Only databases whose name contains this text."),
        click.option(
            "--status",
            type=click.Choice([status.value for status in DatabaseStatus]),
            multiple=True,
            help="Only databases with this status. As the next three, it may be repeated: any of them.",
        ),
        click.option("--engine", type=ENGINE, multiple=True, help=ENGINE_HELP),
        click.option("--region", multiple=True, help="Such as us-east-1."),
        click.option("--plan", type=click.Choice(PLAN_NAMES), multiple=True),
        click.option("--label", multiple=True, metavar="KEY:VALUE", help="May be repeated: all of them."),
        click.option("--host", help="Only databases on the host with this id or host:port."),
        click.option("--all", "with_destroyed", is_flag=True, help="Include destroyed databases."),
        click.option("--pooled", is_flag=True, help="The databases of the warm pool instead of the teams'."),
    )
    for option in reversed(options):
        command = option(command)
    return command


async def _filters(
    status: tuple[str, ...],
    engine: tuple[str, ...],
    region: tuple[str, ...],
    plan: tuple[str, ...],
    label: tuple[str, ...],
    **others: Any,
) -> Filters:
    check_regions(region, await hosts.known_regions())
    if others["team"] is not None:
        await teams.check_known(others["team"])
    if others["host"] is not None:
        await hosts.check_known(others["host"])
    like = DatabaseFilters(
        statuses=tuple(map(DatabaseStatus, status)),
        engines=tuple(map(Engine, engine)),
        regions=region,
        plans=plan,
        labels=tuple(map(parse_label, label)),
    )
    return Filters(like=like, **others)


def _database(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("database", metavar="DATABASE")(command)


@click.group()
def databases() -> None:
    """Databases of all teams. DATABASE is a uuid, the beginning of one, or a unique name."""


@databases.command("list")
@_filtered
@click.option("--sort", type=click.Choice([sort.value for sort in Sort]), default=Sort.CREATED.value, show_default=True)
@click.option("--limit", type=POSITIVE, help=f"The most lines; {SHOWN} by default, all with --json.")
@shown
async def list_databases(sort: str, limit: int | None, **chosen: Any) -> Rows:
    """Show the teams' databases, newest first unless sorted."""
    async with store():
        filters = await _filters(**chosen)
        rows = await inventory.list_databases(filters, Sort(sort), limit)
        counted = await inventory.count_databases(filters)
    note = f"{size_text(counted.storage_bytes)} as last measured"
    return Rows(rows=rows, total=counted.databases, noun="databases", note=note, max_rows=limit or SHOWN)


@databases.command("count")
@_filtered
@click.option("--by", type=click.Choice([by.value for by in Grouping]), default=Grouping.TEAM.value, show_default=True)
@shown
async def count_databases(by: str, **chosen: Any) -> list[DatabaseCount]:
    """Count databases, their storage as last measured, and the sum of their connection limits."""
    async with store():
        return await inventory.count_by(await _filters(**chosen), Grouping(by))


@databases.command("inspect")
@_database
@shown
async def inspect_database(database: str) -> DatabaseDetails:
    """Show everything that is recorded about one database."""
    async with store():
        return await inventory.get_details(await inventory.resolve(database, deleted=None))


@databases.command("pause")
@_database
@shown
async def pause_database(database: str) -> DatabaseDetails:
    """End all connections to a database and refuse new ones; its data and credentials stay."""
    async with store():
        found = await inventory.resolve(database)
        async with change(Action.DATABASE_PAUSE, ("database", found)):
            paused = await operator.pause(plans(), found)
        return await _applied(paused)


@databases.command("resume")
@_database
@shown
async def resume_database(database: str) -> DatabaseDetails:
    """Let a paused database's credentials work again, whatever the reason for the pause."""
    async with store():
        found = await inventory.resolve(database)
        async with change(Action.DATABASE_RESUME, ("database", found)):
            resumed = await operator.resume(found)
        return await _applied(resumed)


@databases.command("undelete")
@_database
@shown
async def undelete_database(database: str) -> DatabaseDetails:
    """Restore a deleted database while its data is kept: with its name, its data and its credentials."""
    async with store():
        found = await inventory.resolve(database, deleted=True)
        async with change(Action.DATABASE_UNDELETE, ("database", found)):
            undeleted = await undelete(plans(), found)
        return await _applied(undeleted)


@databases.command("waive-final-backup")
@_database
@click.confirmation_option(prompt="Nothing brings its data back once it is destroyed. Go on?")
@shown
async def waive_final_backup(database: str) -> DatabaseDetails:
    """Have the data of one deleted database destroyed without a final backup, when its grace is over."""
    async with store():
        found = await inventory.resolve(database, deleted=None)
        async with change(Action.DATABASE_WAIVE_FINAL_BACKUP, ("database", found)):
            await final.waive(found)
        return await inventory.get_details(found)


@databases.command("deleted")
@click.option("--team", help="Only databases of the team with this id or name.")
@shown
async def list_deleted(team: str | None) -> Rows:
    """Show the deleted databases that can be undeleted, the last deleted one first."""
    async with store():
        if team is not None:
            await teams.check_known(team)
        rows = await inventory.list_retained(Filters(team=team))
    return Rows(rows=rows, total=len(rows), noun="deleted databases", max_rows=SHOWN)


@databases.command("protect")
@_database
@shown
async def protect_database(database: str) -> DatabaseDetails:
    """Refuse to delete a database until it is unprotected."""
    return await _changed(database, deletion_protection=True)


@databases.command("unprotect")
@_database
@shown
async def unprotect_database(database: str) -> DatabaseDetails:
    """Undo protect."""
    return await _changed(database, deletion_protection=False)


@databases.command("expire")
@_database
@click.argument("moment")
@shown
async def expire_database(database: str, moment: str) -> DatabaseDetails:
    """Have a database delete itself at MOMENT, such as 2027-01-31T12:00:00Z, or `never`."""
    return await _changed(database, expires_at=None if moment == "never" else moment)


@databases.command("rename")
@_database
@click.argument("name")
@shown
async def rename_database(database: str, name: str) -> DatabaseDetails:
    """Rename a database. Its address, user and password stay."""
    return await _changed(database, name=name)


@databases.command("delete")
@_database
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@click.option("--even-if-protected", is_flag=True, help="Delete it although its deletion_protection is true.")
@shown
async def delete_database(database: str, yes: bool, even_if_protected: bool) -> DatabaseDetails:
    """End all access to a database immediately. Its data is kept for the grace period, in which undelete restores
    it."""
    async with store():
        found = await inventory.get_details(await inventory.resolve(database))
        if not yes:
            click.confirm(f"Delete {found.name} ({found.uuid}) of {found.team}?", abort=True, err=True)
        async with change(Action.DATABASE_DELETE, ("database", found.uuid)):
            grace = timedelta(seconds=settings().deletion_grace_seconds)
            await service.delete_any(plans(), found.uuid, grace, even_if_protected=even_if_protected)
        return await _revoked(found.uuid)


async def _changed(database: str, **fields: Any) -> DatabaseDetails:
    """Raises `InvalidField` that names the field."""
    try:
        wanted = msgspec.convert(fields, ChangeDatabase)
    except msgspec.ValidationError as fault:
        (field,) = fields
        raise InvalidField(field, f"This is no valid {field}: {fault}") from None
    async with store(), change(Action.DATABASE_CHANGE, "database"):
        uuid = await inventory.resolve(database)
        note(subject=("database", uuid))
        await service.change_any(uuid, wanted)
        return await inventory.get_details(uuid)


async def _revoked(database: UUID) -> DatabaseDetails:
    """Waits until all access has ended. Raises `click.ClickException` when that takes too long."""

    async def look() -> DatabaseDetails | None:
        details = await inventory.get_details(database)
        return details if details.revoked_at or details.remote_since is None else None

    deletion = (await inventory.get_details(database)).deletion_revision
    return await _awaited(database, look, delete_workflow_id(database, deletion))


async def _applied(changed: DatabaseRecord) -> DatabaseDetails:
    """Waits until the engine is as recorded. Raises `click.ClickException` when that takes too long."""

    async def look() -> DatabaseDetails | None:
        details = await inventory.get_details(changed.uuid)
        return details if details.access_applied >= changed.access_revision else None

    return await _awaited(changed.uuid, look, access_workflow_id(changed.uuid, changed.access_revision))


async def _awaited(
    database: UUID, look: Callable[[], Awaitable[DatabaseDetails | None]], workflow_id: str
) -> DatabaseDetails:
    async with row_watch().running() as watch:
        details = await watch.wait_for(database, look, _APPLIED_SECONDS)
    if details is None:
        raise click.ClickException(
            f"It is recorded, but not applied on the engine yet. The work continues: see the workflow {workflow_id}."
        )
    return details


for _command in (*COMMANDS, metrics):
    databases.add_command(_command)
