"""Bringing a backup back that our own database may know nothing of."""

from uuid import UUID

from msgspec import UNSET

from app.audit.drafts import note
from app.audit.events import audited
from app.auth.operators import acting_for
from app.backups import stored
from app.backups.storage.errors import IdentityNeeded
from app.backups.storage.store import BackupStore
from app.blueprints.large_scripts import LargeScripts
from app.core.secrets import SecretBox
from app.databases.pool.claim import ReadyMembers
from app.databases.schemas import CreateDatabase, DatabaseSource
from app.provisioning.creation import DatabaseCreation
from app.quotas.plans import Plans
from app.store.notify import RowWatch


async def restore_stored(
    store: BackupStore,
    backup: UUID,
    *,
    team_id: int,
    name: str | None,
    region: str | None,
    plans: Plans,
    box: SecretBox,
    watch: RowWatch,
) -> UUID:
    """Makes a record of the backup if there is none, and a database of that team from it, as the team's own create
    would. Returns the database's uuid; a worker of its region fills it.

    Raises `InvalidField` for an unknown team, `NotFound` for a backup that is another team's by our record, and what a
    create raises; `BackupMissing`, `BackupDamaged`, `IdentityNeeded`, `StoreUnavailable`, `StoreRefused`.
    """
    key = await store.stored_key(backup)
    manifest = await store.get_manifest(backup, key)
    if key.identity is None:
        raise IdentityNeeded(f"Backup {backup} is encrypted to an age recipient: give its identity by --identity FILE.")
    principal = await acting_for(team_id)
    creation = DatabaseCreation(
        principal,
        CreateDatabase(
            name=name or manifest.database_name,
            region=region or UNSET,
            source=DatabaseSource(backup_uuid=backup),
        ),
        plans=plans,
        box=box,
        members=ReadyMembers(),
        watch=watch,
        scripts=LargeScripts(),
    )
    async with audited():
        # What the operator's identity has opened, the worker that loads it opens too.
        readable = store.readable(key)
        if not await stored.adopt(manifest, readable, team_id, region=region):
            await stored.set_key(backup, readable)
        accepted = await creation.begin()
        note(subject=("database", accepted.subject), changes={"backup": (None, str(backup))})
    return UUID(accepted.subject)
