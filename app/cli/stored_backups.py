"""`headwater backups verify-store|recover|restore`: backups as the store has them."""

import contextlib
import os
from pathlib import Path
from uuid import UUID

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.drafts import Draft, drafting
from app.backups.storage.checking import check_backup
from app.backups.storage.errors import BackupStoreError
from app.backups.storage.manifest import BackupManifest
from app.backups.storage.store import BackupStore, StoredBackup
from app.cli.installation import backup_store, box_of, plans, row_watch, sealing_box, store
from app.cli.output import shown
from app.cli.tables import Rows
from app.core.clock import Moment
from app.core.errors import NotFound
from app.core.settings import InvalidSettings, Settings
from app.engines.dumping import count_rows, count_tables
from app.local.home import Home
from app.provisioning.recovering import restore_stored
from app.provisioning.waiting import await_active
from app.upkeep.reconcile.findings import Report
from app.upkeep.stored_backups import verify_store as verify

IDENTITY = click.option(
    "--identity",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with age identities, in place of HEADWATER_BACKUP_AGE_IDENTITY_FILE.",
)


class RecoverableBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup as the store alone describes it. `state` is `whole`, `identity needed`, or what is wrong with it."""

    uuid: UUID
    database: str | None = None
    database_uuid: UUID | None = None
    team_id: int | None = None
    team: str | None = None
    db_type: str | None = None
    kind: str | None = None
    consistent_at: Moment | None = None
    size_bytes: int | None = None
    stored_bytes: int | None = None
    tables: int | None = None
    rows: int | None = None
    state: str


class RestoredDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """Its password is read from the API, by its team."""

    uuid: UUID
    name: str
    team_id: int
    region: str
    status: str


@click.command("verify-store")
@click.option("--deep", is_flag=True, help="Read every object, and compare its contents with its manifest.")
@IDENTITY
@shown
async def verify_store(deep: bool, identity: Path | None) -> Report:
    """Compare our records of backups with the whole store. Changes nothing; exits with 1 on a violation."""
    async with store():
        try:
            return await verify(backup_store(identity), deep=deep)
        except BackupStoreError as error:
            raise click.ClickException(str(error)) from None


@click.command("recover")
@IDENTITY
@shown
async def recover(identity: Path | None) -> Rows:
    """List the backups that the store has, newest first. Needs nothing but the store and HEADWATER_SECRET_KEYS."""
    backups = lone_backup_store(identity)
    try:
        found = [await _recoverable(backups, item) async for item in backups.walk() if isinstance(item, StoredBackup)]
    except BackupStoreError as error:
        raise click.ClickException(str(error)) from None
    found.sort(key=lambda one: (one.consistent_at is not None, one.consistent_at), reverse=True)
    return Rows(rows=found, total=len(found), noun="backups", max_rows=len(found))


@click.command("restore")
@click.argument("backup")
@click.option("--team", "team_id", type=int, required=True, help="The id of the team whose database it becomes.")
@click.option("--name", help="The database's name, if not the one that it had.")
@click.option("--region", help="Its region, if not the one that it was in.")
@IDENTITY
@click.option("--wait", type=click.FloatRange(min=0), default=600, show_default=True, help="Seconds to wait for it.")
@shown
async def restore(
    backup: str, team_id: int, name: str | None, region: str | None, identity: Path | None, wait: float
) -> RestoredDatabase:
    """Bring a backup back from the store as a new database of a team, whether we have a record of it or not. BACKUP
    is a uuid or the beginning of one."""
    async with store():
        stored, box = backup_store(identity), await sealing_box()
        try:
            restoring = Draft(action=Action.DATABASE_RECOVER, object="database", team_id=team_id)
            async with row_watch().running() as watch:
                try:
                    with drafting(restoring):
                        database = await restore_stored(
                            stored,
                            await _whole_uuid(stored, backup),
                            team_id=team_id,
                            name=name,
                            region=region,
                            plans=plans(),
                            box=box,
                            watch=watch,
                        )
                except NotFound:
                    fault = f"Team {team_id} has no such backup: by our record it is another team's, or deleted."
                    raise click.ClickException(fault) from None
                try:
                    record = await await_active(watch, database, wait)
                except NotFound:
                    fault = "It was not restored; 'headwater operations list' says why."
                    raise click.ClickException(fault) from None
        except BackupStoreError as error:
            raise click.ClickException(str(error)) from None
    return RestoredDatabase(
        uuid=record.uuid, name=record.name, team_id=team_id, region=record.region, status=record.status.value
    )


async def _whole_uuid(backups: BackupStore, given: str) -> UUID:
    with contextlib.suppress(ValueError):
        return UUID(given)
    kept = [item.backup async for item in backups.walk() if isinstance(item, StoredBackup)]
    found = [backup for backup in kept if str(backup).startswith(given.lower())]
    if len(found) != 1:
        raise click.ClickException(f"The store has {len(found) or 'no'} backups whose uuid begins with {given!r}.")
    return found[0]


def lone_backup_store(identity: Path | None) -> BackupStore:
    """Without our own database, and without a stack that runs."""
    try:
        given = Settings.load(os.environ)
        if identity is not None:
            given = msgspec.structs.replace(given, backup_age_identity_file=identity)
        keys = given.secret_keys or Home(given.home).kept_secret_keys()
        return BackupStore.from_settings(given, box_of(keys))
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None


async def _recoverable(backups: BackupStore, item: StoredBackup) -> RecoverableBackup:
    checked = await check_backup(backups, item, deep=False)
    state = "; ".join(map(str, checked.faults)) or ("whole" if checked.readable else "identity needed")
    if checked.manifest is None:
        return RecoverableBackup(uuid=item.backup, stored_bytes=item.stored_bytes, state=state)
    return _described(checked.manifest, state)


def _described(manifest: BackupManifest, state: str) -> RecoverableBackup:
    return RecoverableBackup(
        uuid=manifest.backup,
        database=manifest.database_name,
        database_uuid=manifest.database,
        team_id=manifest.team_id,
        team=manifest.team_name,
        db_type=manifest.db_type,
        kind=manifest.kind,
        consistent_at=manifest.consistent_at,
        size_bytes=manifest.plain_bytes,
        stored_bytes=manifest.stored_bytes,
        tables=count_tables(manifest.contents),
        rows=count_rows(manifest.contents),
        state=state,
    )


COMMANDS = (verify_store, recover, restore)
