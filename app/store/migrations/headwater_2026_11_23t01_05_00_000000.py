"""The ledger's sums by days, so that a report of a month adds up days in place of periods.

A trigger writes them, in the transaction that closes a period, and whichever version's process closes it. Decision 50.
"""

from decimal import Decimal

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, BigInt, BigSerial, Numeric, Text, Timestamptz
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-23T01:05:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "sums of the ledger of usage by days"


class UsageDay(Table, tablename="usage_days"):
    id = BigSerial(primary_key=True)
    database_uuid = UUID()
    team_id = BigInt()
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    ends_at = Timestamptz()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))
    one_a_day = Unique([database_uuid, starts_at, team_id, plan, region])


_INDEXES = ("CREATE INDEX usage_days_of_team ON usage_days (team_id, starts_at)",)
_ADD_UP = """
INSERT INTO usage_days (database_uuid, team_id, plan, region, starts_at, ends_at, runtime_seconds,
                        storage_byte_seconds, backup_byte_seconds)
SELECT database_uuid, team_id, plan, region, date_trunc('day', starts_at, 'UTC'), max(ends_at), sum(runtime_seconds),
       sum(storage_byte_seconds), sum(backup_byte_seconds)
FROM {added} GROUP BY 1, 2, 3, 4, 5
"""
# In one order, so that no two of them wait for each other.
_FUNCTION = f"""
CREATE FUNCTION usage_add_to_days() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {_ADD_UP.format(added="added")} ORDER BY 1, 5, 2, 3, 4
    ON CONFLICT (database_uuid, starts_at, team_id, plan, region) DO UPDATE SET
        ends_at = greatest(usage_days.ends_at, excluded.ends_at),
        runtime_seconds = usage_days.runtime_seconds + excluded.runtime_seconds,
        storage_byte_seconds = usage_days.storage_byte_seconds + excluded.storage_byte_seconds,
        backup_byte_seconds = usage_days.backup_byte_seconds + excluded.backup_byte_seconds;
    RETURN NULL;
END $$
"""
# Keeps everybody else from closing anything until what was closed before is added up.
_TRIGGER = (
    "CREATE TRIGGER usage_add_to_days AFTER INSERT ON usage_periods REFERENCING NEW TABLE AS added"
    " FOR EACH STATEMENT EXECUTE FUNCTION usage_add_to_days()"
)


class _WithTrigger(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes the tables; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in (*_INDEXES, _FUNCTION, _TRIGGER, _ADD_UP.format(added="usage_periods")):
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithTrigger(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    name, tablename = UsageDay.__name__, UsageDay._meta.tablename
    manager.add_table(name, tablename)
    for column in UsageDay._meta.columns:
        manager.add_column(name, tablename, column._meta.name, column_class=type(column), params=column._meta.params)
    for constraint in UsageDay._meta.constraints:
        manager.add_constraint(name, tablename, constraint._meta.name, type(constraint), params=constraint._meta.params)
    return manager
