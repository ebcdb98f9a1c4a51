"""`headwater secrets`: the keys with which secrets are sealed."""

import contextlib
from collections import Counter
from collections.abc import Sequence

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.events import change
from app.backups.records import SEALED_KEY
from app.backups.storage.errors import BackupStoreError
from app.backups.storage.store import BackupStore
from app.blueprints.applications.records import SEALED_VALUES
from app.cli.installation import backup_store, secret_box, store
from app.cli.output import shown
from app.core.secrets import SecretBox
from app.credentials.rotations import SEALED_NEW, SEALED_PREVIOUS
from app.credentials.users import SEALED_USER, SEALED_USER_NEXT
from app.databases.passwords import SEALED_PASSWORD
from app.hosts.adapters import SEALED_ADMIN
from app.queries.targets import SEALED_READER
from app.store.sealed import reseal, values_by_key
from app.web.idempotency_rows import SEALED_RESPONSE
from app.webhooks.records import SEALED_SECRET

SEALED = (
    SEALED_ADMIN,
    SEALED_PASSWORD,
    SEALED_NEW,
    SEALED_PREVIOUS,
    SEALED_USER,
    SEALED_USER_NEXT,
    SEALED_READER,
    SEALED_SECRET,
    SEALED_VALUES,
    SEALED_RESPONSE,
    SEALED_KEY,
)
"""Every sealed column. A test finds one that is missing here."""


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """`values` is the number of values sealed with each key, in our own database and in the backup store. Keys with
    none may be removed from HEADWATER_SECRET_KEYS."""

    resealed: int
    newest: str
    values: dict[str, int]
    retirable: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    """Rows and backups that no configured key opens, a hundred at most."""
    backup_store_error: str | None = None
    """Why the backup store could not be asked. Then no key may be removed."""


@click.group()
def secrets() -> None:
    """Keys of sealed secrets."""


@secrets.command("keys")
@shown
async def keys() -> Keys:
    """Show how many secrets are sealed with which key."""
    box, backups = secret_box(), backup_store()
    async with store():
        return await _keys(box, backups)


@secrets.command("reseal")
@shown
async def reseal_all() -> Keys:
    """Reseal everything with the first of HEADWATER_SECRET_KEYS. Can run at any time, and again; give every process
    the new key first."""
    box, backups = secret_box(), backup_store()
    resealed, unreadable = 0, list[str]()
    async with store():
        # Before the work, which is a transaction for each batch.
        async with change(Action.SECRETS_RESEAL, ("secrets", box.newest.decode())):
            pass
        for column in SEALED:
            async for batch in reseal(box, column):
                resealed += batch.done
                unreadable += batch.unreadable
                click.echo(f"{column.name}: {resealed} resealed in all", err=True)
        with contextlib.suppress(BackupStoreError):  # which is reported with the result
            async for one in backups.reseal():
                resealed += one.changed
                unreadable += [one.error] if one.error else []
        click.echo(f"backup store: {resealed} resealed in all", err=True)
        return await _keys(box, backups, resealed, unreadable)


async def _keys(box: SecretBox, backups: BackupStore, resealed: int = 0, unreadable: Sequence[str] = ()) -> Keys:
    newest, known, fault = box.newest.decode(), box.key_ids, None
    total: Counter[str] = Counter(dict.fromkeys(known, 0))
    for column in SEALED:
        total.update(await values_by_key(column))
    try:
        total.update(await backups.key_ids())
    except BackupStoreError as error:
        fault = str(error)
    return Keys(
        resealed=resealed,
        newest=newest,
        values=dict(total),
        retirable=() if fault else tuple(key for key in known if not total[key] and key != newest),
        unreadable=tuple(unreadable[:100]),
        backup_store_error=fault,
    )
