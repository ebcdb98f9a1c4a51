"""`headwater backups list|show|run|test`: the backups of all teams, in our records."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.events import change
from app.auth import teams
from app.backups import inventory, records, service
from app.backups.inventory import BackupFilters
from app.backups.policies import BackupTerms
from app.backups.records import BackupRecord
from app.backups.schemas import BackupView, TakeBackup
from app.backups.views import view
from app.backups.waiting import await_end, await_restore_test
from app.cli.installation import plans, row_watch, settings, store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.cli.tables import SHOWN, Rows, size_text
from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.core.errors import InvalidField, require_found
from app.databases import inventory as databases

_WAIT_SECONDS = 86_400.0
"""How long `--wait` waits. No backup and no test takes as long."""


class BackupDetails(BackupView, kw_only=True):
    """A backup as its team sees it, and what helps operators."""

    team: str
    attempts: int
    position: str | None
    """Its moment in the server's log, where the server has one."""
    tool: str | None
    started_at: datetime | None
    removed_at: datetime | None
    """When the store had nothing of it any more."""


def _backup(command: Any) -> Any:
    return click.argument("backup", metavar="BACKUP")(command)


def _choice(kind: Any) -> click.Choice[str]:
    return click.Choice([one.value for one in kind])


@click.command("list")
@click.option("--team", help="Only backups of the team with this id or name.")
@click.option("--database", help="Only backups of this database: a uuid, the beginning of one, or a unique name.")
@click.option("--status", type=_choice(BackupStatus), help="Deleted ones are shown with this alone.")
@click.option("--kind", type=_choice(BackupKind))
@click.option("--proof", type=_choice(ProofStatus), help="Only backups of which this is known by restoring them.")
@click.option("--limit", type=POSITIVE, help=f"The most lines; {SHOWN} by default, all with --json.")
@shown
async def list_backups(
    team: str | None,
    database: str | None,
    status: str | None,
    kind: str | None,
    proof: str | None,
    limit: int | None,
) -> Rows:
    """Show backups, newest first, and what they take in the store."""
    async with store():
        if team is not None:
            await teams.check_known(team)
        filters = BackupFilters(
            team=team,
            database=None if database is None else await databases.resolve(database, deleted=None),
            status=None if status is None else BackupStatus(status),
            kind=None if kind is None else BackupKind(kind),
            proof=None if proof is None else ProofStatus(proof),
        )
        rows = await inventory.list_lines(filters, limit)
        total = await inventory.total(filters)
    note = f"{size_text(total.stored_bytes)} in the store" if total.stored_bytes else ""
    return Rows(rows=rows, total=total.number, noun="backups", note=note, max_rows=limit or SHOWN)


@click.command("show")
@_backup
@shown
async def show_backup(backup: str) -> BackupDetails:
    """Show everything about one backup. BACKUP is a uuid or the beginning of one."""
    async with store():
        return await _details(await inventory.resolve(backup))


@click.command("run")
@click.argument("database", metavar="DATABASE")
@click.option("--description", help="For people.")
@click.option("--keep-days", type=POSITIVE, help="How long it is kept; without it, until somebody deletes it.")
@click.option("--wait", is_flag=True, help="Return when it has ended.")
@shown
async def run_backup(database: str, description: str | None, keep_days: int | None, wait: bool) -> BackupDetails:
    """Take a backup of a database now. DATABASE is a uuid, the beginning of one, or a unique name."""
    request = _request(description, keep_days)
    async with store():
        subject = await databases.resolve(database)
        async with change(Action.BACKUP_TAKE, ("database", subject)):
            accepted = await service.take_any(BackupTerms.of(plans(), settings()), subject, request)
        uuid = UUID(accepted.subject)
        if wait:
            async with row_watch().running() as watch:
                await await_end(watch, await service.get_any(uuid), _WAIT_SECONDS)
        return await _details(uuid)


@click.command("test")
@_backup
@click.option("--wait", is_flag=True, help="Return when the test has ended.")
@shown
async def prove_backup(backup: str, wait: bool) -> BackupDetails:
    """Prove a backup by restoring it into a database that no team has. BACKUP is a uuid or the beginning of one."""
    async with store():
        found = await inventory.resolve(backup)
        async with change(Action.BACKUP_TEST, ("backup", found)):
            accepted = await service.test_any(BackupTerms.of(plans(), settings()), found)
        uuid, number = service.read_test_subject(accepted.subject)
        if wait:
            async with row_watch().running() as watch:
                await await_restore_test(watch, await service.get_any(uuid), number, _WAIT_SECONDS)
        return await _details(uuid)


COMMANDS = (list_backups, show_backup, run_backup, prove_backup)


def _request(description: str | None, keep_days: int | None) -> TakeBackup:
    """What the API takes, and nothing else. Raises `InvalidField`."""
    try:
        return msgspec.convert({"description": description, "keep_days": keep_days}, TakeBackup)
    except msgspec.ValidationError as fault:
        raise InvalidField("backup", f"Such a backup can't be taken: {fault}") from None


async def _details(backup: UUID) -> BackupDetails:
    record: BackupRecord = require_found(await records.find(backup), "backup")
    form = record.format
    seen = view(record)
    return BackupDetails(
        **{name: getattr(seen, name) for name in BackupView.__struct_fields__},
        team=await inventory.team_name(record.team_id),
        attempts=record.attempts,
        position=record.position,
        tool=None if form is None else form.tool,
        started_at=record.started_at,
        removed_at=record.removed_at,
    )
