"""Keys for one team or some databases, who minted them, and their rotations."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, Array, BigInt, BigSerial, Bytea, Column, ForeignKey, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T15:05:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "keys for one team or some databases, who minted them, and their rotations"


class Team(Table, tablename="teams", db=DB):
    id = BigSerial(primary_key=True)


_COLUMNS: dict[str, Column] = {
    "team_id": ForeignKey(Team, null=True, default=None, on_delete=OnDelete.cascade),
    "databases": Array(base_column=UUID(), null=True, default=None),
    "minted_by": BigInt(null=True, default=None),
    "previous_hash": Bytea(null=True, default=None),
    "previous_until": Timestamptz(null=True, default=None),
}
_INDEXES = (
    "CREATE UNIQUE INDEX api_keys_previous_hash ON api_keys (previous_hash) WHERE previous_hash IS NOT NULL",
    "CREATE INDEX api_keys_minted_by ON api_keys (minted_by) WHERE minted_by IS NOT NULL",
)


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it adds columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _INDEXES:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for name, column in _COLUMNS.items():
        manager.add_column(
            "ApiKey", "api_keys", name, column_class=type(column), params=column._meta.params
        )
    return manager
