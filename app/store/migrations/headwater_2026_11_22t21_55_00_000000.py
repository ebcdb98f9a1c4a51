"""Passkeys, and the challenges that they sign."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, Array, BigInt, BigSerial, Boolean, Bytea, Column, ForeignKey, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T21:55:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "passkeys"


class User(Table, tablename="users", db=DB):
    id = BigSerial(primary_key=True)


def _now() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


_PASSKEY: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "uuid": UUID(unique=True),
    "user_id": ForeignKey(User, null=False, on_delete=OnDelete.cascade),
    "rp_id": Text(),
    "credential_id": Bytea(unique=True),
    "public_key": Bytea(),
    "sign_count": BigInt(default=0),
    "name": Text(),
    "transports": Array(base_column=Text(), default=list),
    "synced": Boolean(default=False),
    "last_used_at": Timestamptz(null=True, default=None),
    "created_at": _now(),
}
_CHALLENGE: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "hash": Bytea(unique=True),
    "user_id": ForeignKey(User, null=True, default=None, on_delete=OnDelete.cascade),
    "expires_at": Timestamptz(),
    "created_at": _now(),
}
_AFTERWARDS = (
    "CREATE INDEX passkeys_of_user ON passkeys (user_id, id)",
    "CREATE INDEX passkey_challenges_by_end ON passkey_challenges (expires_at)",
)


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes tables and columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _AFTERWARDS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table_class, table, columns in (
        ("Passkey", "passkeys", _PASSKEY),
        ("PasskeyChallenge", "passkey_challenges", _CHALLENGE),
    ):
        manager.add_table(class_name=table_class, tablename=table)
        for name, column in columns.items():
            manager.add_column(table_class, table, name, column_class=type(column), params=column._meta.params)
    return manager
