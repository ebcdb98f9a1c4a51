"""Loading a backup into an empty database and comparing what is there then with what the backup holds: the one way
back, for restore tests and for every restore."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from uuid import UUID

import msgspec

from app.backups.records import BackupRecord
from app.backups.schemas import Difference
from app.backups.storage.keys import BackupKey
from app.backups.storage.manifest import BackupManifest
from app.backups.storage.store import BackupStore
from app.engines.base import EngineAdapter, Tenant
from app.engines.dumping import Content, ContentKind, count_rows, count_tables

MOST_DIFFERENCES = 100


class ContentsDiffer(Exception):
    """What was restored is not what was backed up."""

    def __init__(self, differences: list[Difference]) -> None:
        """`differences` are the first hundred, by name."""
        super().__init__(f"{len(differences)} objects were restored otherwise than they were backed up")
        self.differences = differences


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was loaded, and compared."""

    tables: int
    rows: int
    seconds: float
    """What the load and the comparison took."""


async def open_backup(store: BackupStore, backup: BackupRecord | UUID) -> tuple[BackupManifest, BackupKey]:
    """The backup's manifest and key; found by its uuid alone where our own record is lost. Raises `BackupDamaged`,
    `BackupMissing`, `StoreUnavailable`, `StoreRefused`."""
    if isinstance(backup, BackupRecord) and backup.wrapped_key is not None:
        uuid, key = backup.uuid, store.open_key(backup.uuid, backup.wrapped_key)
    else:
        uuid = backup.uuid if isinstance(backup, BackupRecord) else backup
        key = await store.stored_key(uuid)
    return await store.get_manifest(uuid, key), key


async def load_backup(
    store: BackupStore,
    backup: BackupRecord | UUID,
    adapter: EngineAdapter,
    tenant: Tenant,
    *,
    becomes: Tenant | None = None,
    through: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]] = lambda chunks: chunks,
) -> LoadReport:
    """Loads the backup into the tenant's empty database with the tenant's own rights, and compares all that the
    database holds then with the manifest. Whatever this raises, `EngineAdapter.clear` has to come before another
    attempt. `becomes`: see `EngineAdapter.load`. `through` is what the dump passes on its way.

    Raises `ContentsDiffer`; `LoadRefused` and `HostUnavailable` of the engine; `BackupDamaged`, `BackupMissing`,
    `IdentityNeeded`, `StoreUnavailable` and `StoreRefused` of the store.
    """
    began = time.monotonic()
    manifest, key = await open_backup(store, backup)
    await adapter.load(tenant, manifest.format, through(store.read(manifest, key)), becomes=becomes)
    found = await adapter.contents(tenant)
    if differing := differences(manifest.contents, found):
        raise ContentsDiffer(differing)
    return LoadReport(tables=count_tables(found), rows=count_rows(found), seconds=time.monotonic() - began)


def differences(
    expected: tuple[Content, ...] | list[Content], found: tuple[Content, ...] | list[Content]
) -> list[Difference]:
    """The first hundred objects that are not the same on both sides, by name."""
    before, after = _by_name(expected), _by_name(found)
    names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    names = [name for name in names if name in before or after[name].kind is not ContentKind.DEFINITIONS]
    return [_difference(*name, before.get(name), after.get(name)) for name in names[:MOST_DIFFERENCES]]


def _difference(kind: str, name: str, before: Content | None, after: Content | None) -> Difference:
    return Difference(
        name=name,
        kind=kind,
        expected_rows=None if before is None else before.rows,
        restored_rows=None if after is None else after.rows,
    )


def _by_name(contents: tuple[Content, ...] | list[Content]) -> Mapping[tuple[str, str], Content]:
    return {(one.kind.value, one.name): one for one in contents}
