"""A backup as the source of a restore."""

from collections.abc import Sequence
from uuid import UUID

from app.auth.principal import Principal
from app.backups import records
from app.backups.records import BackupRecord
from app.contracts.backups import BackupStatus
from app.contracts.base import Engine
from app.core.errors import BackupIncompatible, BackupNotCompleted, require_found
from app.engines.dumping import DumpFormat
from app.engines.registry import loads_dumps_of
from app.hosts.records import HostVersion, host_versions
from app.quotas.usage import stored_on_hosts

BACKUP = "backup"
_GIB = 2**30


async def find_source(principal: Principal, backup: UUID) -> BackupRecord:
    """The backup, if it is one of the caller's teams' and can be restored. Raises `NotFound`; `BackupNotCompleted`."""
    record = require_found(await records.find_owned(backup, principal.team_ids), BACKUP)
    if record.status is not BackupStatus.COMPLETED:
        raise BackupNotCompleted(record.status.value)
    return record


def check_engine(record: BackupRecord, engine: Engine) -> None:
    """Raises `BackupIncompatible` for another engine."""
    form = record.format
    if record.engine is not engine:
        version = "" if form is None else form.server_version
        raise BackupIncompatible(
            f"The backup is of {record.engine.value}, the database is to be {engine.value}.",
            engine=record.engine.value,
            engine_version=version,
        )


def is_loadable(form: DumpFormat, *, flavour: str, version: str) -> bool:
    """Whether a host of this flavour and version can load such a dump: it needs the same flavour, and no older
    series."""
    return form.flavour == flavour and loads_dumps_of(flavour, form.server_version, version)


async def hosts_that_take(flavour: str, version: str, octets: int) -> list[int]:
    """The ids of the registered hosts that load what a server of that flavour and version has dumped, and have storage
    for so many bytes more, as far as their operator said how much they have."""
    dumped = DumpFormat(flavour=flavour, server_version=version, tool="", layout="")
    hosts = await host_versions()
    able = [one for one in hosts if is_loadable(dumped, flavour=one.flavour, version=one.version)]
    return await with_storage_for(octets, able)


async def with_storage_for(octets: int, hosts: Sequence[HostVersion]) -> list[int]:
    """The ids of those hosts that have storage for so many bytes more, or have no bound. Data that is being loaded is
    counted once it is measured."""
    bounded = any(one.storage_gb is not None for one in hosts)
    stored = await stored_on_hosts() if bounded else {}
    return [
        one.id for one in hosts if one.storage_gb is None or stored.get(one.id, 0) + octets <= one.storage_gb * _GIB
    ]


def check_host(record: BackupRecord, *, flavour: str, version: str) -> None:
    """Raises `BackupIncompatible` where a host of this flavour and version can't load it."""
    form = record.format
    if form is not None and not is_loadable(form, flavour=flavour, version=version):
        raise BackupIncompatible(
            f"The backup is of {form.flavour} {form.server_version}; the host is {flavour} {version}.",
            engine=record.engine.value,
            engine_version=form.server_version,
        )
