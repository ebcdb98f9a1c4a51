"""What a new database is to be filled from: found, and checked against what is asked for."""

from uuid import UUID

import msgspec
from msgspec import UNSET

from app.auth.principal import Principal
from app.auth.scopes import Scope, grants
from app.backups import records as backups
from app.backups.records import BackupRecord
from app.backups.restores import records
from app.backups.sources import find_source as find_completed
from app.backups.sources import hosts_that_take
from app.contracts.base import DatabaseStatus, Engine
from app.contracts.restores import RestorationKind
from app.core.errors import InsufficientScope, InvalidField
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.databases.schemas import CreateDatabase, DatabaseSource
from app.hosts.records import version_of
from app.quotas.plans import Quotas
from app.quotas.usage import storage_of


class FoundSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source, and what a database made from it has unless something else is asked for."""

    kind: RestorationKind
    engine: Engine
    region: str
    plan: str
    quotas: Quotas
    hosts: list[int]
    """The ids of the hosts that take its data."""
    backup_uuid: UUID | None = None
    source_id: int | None = None
    """The id of the database that is cloned."""
    pause_source: bool = False
    prefers: int | None = None
    """The id of the host on which it is made at once, if there is room."""

    def completed(self, request: CreateDatabase) -> CreateDatabase:
        """The request, completed with what it leaves to the source. Raises `InvalidField`."""
        if request.db_type is not UNSET and request.db_type is not self.engine:
            raise InvalidField("db_type", f"The source is a {self.engine.value} database; so is what is made from it.")
        if self.kind is RestorationKind.CLONE and request.region not in (UNSET, self.region):
            raise InvalidField(
                "region", f"A clone lies in its source's region, {self.region}. A backup serves for another one."
            )
        quotas = _merged(request, self.quotas)
        return msgspec.structs.replace(
            request,
            db_type=self.engine,
            region=self.region if request.region is UNSET else request.region,
            plan=self.plan if request.plan is UNSET else request.plan,
            storage_hard_limit_gb=quotas.storage_hard_limit_gb,
            connection_hard_limit=quotas.connection_hard_limit,
            warning_threshold_pct=quotas.warning_threshold_pct,
        )


async def find_source(principal: Principal, source: DatabaseSource) -> FoundSource:
    """Raises `NotFound` for what is not the caller's, `InvalidField` or `BackupNotCompleted` for what can't be a
    source, and `InsufficientScope`."""
    if (source.backup_uuid is UNSET) == (source.database_uuid is UNSET):
        raise InvalidField("source", "Expected either backup_uuid or database_uuid.")
    if isinstance(source.backup_uuid, UUID):
        if source.pause_source:
            raise InvalidField("source.pause_source", "A backup has no source that could be paused.")
        _demand(principal, Scope.BACKUPS_READ)
        return await _of_backup(await find_completed(principal, source.backup_uuid))
    assert isinstance(source.database_uuid, UUID), "one of the two is given"
    _demand(principal, Scope.DATABASES_READ)
    database = await databases.get_owned(source.database_uuid, principal.team_ids)
    return await _of_database(database, pause_source=source.pause_source)


async def _of_backup(backup: BackupRecord) -> FoundSource:
    assert backup.format is not None, "it is completed"
    return FoundSource(
        kind=RestorationKind.FROM_BACKUP,
        engine=backup.engine,
        region=backup.region,
        plan=backup.plan,
        quotas=backup.quotas,
        hosts=await hosts_that_take(backup.format.flavour, backup.format.server_version, backup.size_bytes or 0),
        backup_uuid=backup.uuid,
    )


async def _of_database(record: DatabaseRecord, *, pause_source: bool) -> FoundSource:
    if record.status is DatabaseStatus.PROVISIONING:
        raise InvalidField("source.database_uuid", "The database is provisioning: there is nothing to clone yet.")
    found = await version_of(record.host_id)
    hosts = await hosts_that_take(found.flavour, found.version, await storage_of(record.id))
    return FoundSource(
        kind=RestorationKind.CLONE,
        engine=record.engine,
        region=record.region,
        plan=record.plan,
        quotas=record.quotas,
        hosts=hosts,
        source_id=record.id,
        pause_source=pause_source,
        prefers=record.host_id if pause_source and record.host_id in hosts else None,
    )


def _merged(request: CreateDatabase, source: Quotas) -> Quotas:
    given = {name: value for name, value in msgspec.structs.asdict(request.quotas).items() if value is not None}
    return msgspec.structs.replace(source, **given)


def _demand(principal: Principal, scope: Scope) -> None:
    if not grants(principal.scopes, scope):
        raise InsufficientScope(scope.value)


async def hosts_for(database: UUID) -> list[int] | None:
    """The hosts that can take what fills a database that is being made; None where it is to be empty."""
    record = await databases.find(database)
    filling = None if record is None else await records.find_open(record.id)
    if filling is None:
        return None
    if filling.backup_uuid is not None:
        backup = await backups.find(filling.backup_uuid)
        if backup is None or backup.format is None:
            return None
        return await hosts_that_take(backup.format.flavour, backup.format.server_version, backup.size_bytes or 0)
    source = None if filling.source is None else await databases.find(filling.source)
    if source is None:
        return None
    found = await version_of(source.host_id)
    return await hosts_that_take(found.flavour, found.version, await storage_of(source.id))
