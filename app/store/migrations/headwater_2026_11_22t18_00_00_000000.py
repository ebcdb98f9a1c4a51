"""Roles of members, invitations, deleted teams, and the teams that keys have no part in any more."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Array, BigInt, BigSerial, Bytea, Column, ForeignKey, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T18:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "roles of members, invitations, deleted teams"


class Team(Table, tablename="teams", db=DB):
    id = BigSerial(primary_key=True)


_INVITATION: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "team_id": ForeignKey(Team, null=False, on_delete=OnDelete.cascade),
    "role": Text(),
    "token_hash": Bytea(unique=True),
    "invited_by_id": BigInt(null=True, default=None),
    "accepted_by_id": BigInt(null=True, default=None),
    "accepted_at": Timestamptz(null=True, default=None),
    "expires_at": Timestamptz(),
    "created_at": Timestamptz(default=TimestamptzNow()),
}
_COLUMNS: dict[tuple[str, str, str], Column] = {
    ("Team", "teams", "deleted_at"): Timestamptz(null=True, default=None),
    ("Membership", "memberships", "role"): Text(default="member"),
    ("ApiKey", "api_keys", "ended_teams"): Array(base_column=BigInt(), default=list),
}
_AFTERWARDS = (
    # Until now everybody in a team could do everything there: nobody loses anything, and each team has an owner.
    "UPDATE memberships SET role = 'owner'",
    "CREATE INDEX invitations_of_teams ON invitations (team_id, (-id))",
    "CREATE INDEX api_keys_of_teams ON api_keys (team_id) WHERE team_id IS NOT NULL",
)


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes tables and columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _AFTERWARDS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    manager.add_table(class_name="Invitation", tablename="invitations")
    for name, column in _INVITATION.items():
        manager.add_column(
            "Invitation", "invitations", name, column_class=type(column), params=column._meta.params
        )
    for (table_class, table, name), column in _COLUMNS.items():
        manager.add_column(table_class, table, name, column_class=type(column), params=column._meta.params)
    return manager
