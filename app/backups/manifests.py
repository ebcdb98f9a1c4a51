"""What a backup's manifest says of its database: enough to bring it back without our own database, with the same
logins."""

from app.backups.records import BackupRecord
from app.backups.storage.keys import BackupKey
from app.backups.storage.manifest import BackupManifest, ManifestUser, StoredParts
from app.core.secrets import SecretBox
from app.credentials import users
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.engines.dumping import Content, Dump
from app.quotas.plans import Quotas

_PASSWORD = "password"  # noqa: S105 - what is sealed, not a secret


async def describe(
    record: BackupRecord,
    database: DatabaseRecord,
    key: BackupKey,
    box: SecretBox,
    *,
    dump: Dump,
    stored: StoredParts,
    contents: list[Content],
) -> BackupManifest:
    """The manifest of a dump that is in the store. `database` as it is now: its logins may have changed since the dump
    began."""
    return BackupManifest(
        backup=record.uuid,
        kind=record.kind.value,
        description=record.description,
        created_at=record.created_at,
        expires_at=record.expires_at,
        database=database.uuid,
        database_name=database.name,
        team_id=record.team_id,
        team_name=database.team_name or "",
        db_type=record.engine.value,
        plan=database.plan,
        limits=limits_of(database.quotas),
        region=database.region,
        db_name=database.engine_name,
        db_username=database.login,
        sealed_password=key.seal(tenant_of(database, box).password, _PASSWORD),
        users=tuple(
            ManifestUser(
                name=user.name,
                db_username=user.login_name,
                access=user.access.value,
                connection_limit=user.connection_limit,
                expires_at=user.expires_at,
                sealed_password=key.seal(user.password(box), _of_user(user.login_name)),
            )
            for user in await users.list_of(database.id)
        ),
        format=dump.format,
        consistent_at=dump.consistent_at,
        position=dump.position,
        parts=stored.parts,
        contents=tuple(contents),
    )


def password_of(manifest: BackupManifest, key: BackupKey) -> str:
    """The password of the database's own login. Raises `BackupDamaged`."""
    return key.open(manifest.sealed_password, _PASSWORD)


def user_password_of(user: ManifestUser, key: BackupKey) -> str:
    """The password of one of the database's users. Raises `BackupDamaged`."""
    return key.open(user.sealed_password, _of_user(user.db_username))


def limits_of(quotas: Quotas) -> dict[str, float]:
    """The limits that the database has of its own, by the names of `Quotas`."""
    every = {
        "storage_hard_limit_gb": quotas.storage_hard_limit_gb,
        "connection_hard_limit": quotas.connection_hard_limit,
        "warning_threshold_pct": quotas.warning_threshold_pct,
    }
    return {name: value for name, value in every.items() if value is not None}


def quotas_of(manifest: BackupManifest) -> Quotas:
    """The opposite of `limits_of`."""
    limits = manifest.limits
    connections, percent = limits.get("connection_hard_limit"), limits.get("warning_threshold_pct")
    return Quotas(
        storage_hard_limit_gb=limits.get("storage_hard_limit_gb"),
        connection_hard_limit=None if connections is None else int(connections),
        warning_threshold_pct=None if percent is None else int(percent),
    )


def _of_user(login: str) -> str:
    return f"password of {login}"
