"""Invitations for one address, and attempts to sign in."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import BigSerial, Column, Integer, Text, Timestamptz
from piccolo.constraints import Unique

ID = "2026-11-23T01:15:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "invitations for one address, attempts to sign in"

_ATTEMPT: dict[str, Column] = {
    "id": BigSerial(primary_key=True),
    "network": Text(),
    "minute": Timestamptz(),
    "attempts": Integer(default=0),
}


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    email = Text(null=True, default=None)
    manager.add_column("Invitation", "invitations", "email", column_class=Text, params=email._meta.params)
    manager.add_table(class_name="SignInAttempt", tablename="sign_in_attempts")
    for name, column in _ATTEMPT.items():
        manager.add_column(
            "SignInAttempt", "sign_in_attempts", name, column_class=type(column), params=column._meta.params
        )
    manager.add_constraint(
        table_class_name="SignInAttempt",
        tablename="sign_in_attempts",
        constraint_name="one_a_minute",
        constraint_class=Unique,
        params={"columns": ["network", "minute"], "nulls_distinct": True},
    )
    return manager
