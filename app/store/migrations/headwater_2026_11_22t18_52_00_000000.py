"""Labels of databases, and the indexes of the filters of their lists."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import Array, BigInt, BigSerial, Column, ForeignKey, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T18:52:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "labels of databases, and filters of their lists"


class Database(Table, tablename="databases", db=DB):
    id = BigSerial(primary_key=True)


class DatabaseLabel(Table, tablename="database_labels", db=DB):
    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    team_id = BigInt()
    position = BigInt()
    label = Text()
    once = Unique([database_id, label])


_COLUMNS: dict[tuple[str, str], Column] = {
    ("Database", "databases"): Array(base_column=Text(), default=list),
    ("WorkflowStart", "workflow_starts"): Array(base_column=Text(), default=list),
}
# Those of lists sort by `position DESC`, which databases_in_order doesn't: no plan may take that one for them.
_STATEMENTS = (
    *(
        f"CREATE INDEX databases_by_{column} ON databases (team_id, {column}, position DESC)"
        " WHERE team_id IS NOT NULL AND status <> 'deleted'"
        for column in ("status", "engine", "region", "plan")
    ),
    'CREATE INDEX databases_by_name ON databases (team_id, name COLLATE "C") INCLUDE (position)'
    " WHERE team_id IS NOT NULL AND status <> 'deleted'",
    "CREATE INDEX database_labels_in_order ON database_labels (team_id, label, position DESC)",
    """
    CREATE FUNCTION index_database_labels() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM database_labels WHERE database_id = NEW.id;
        IF NEW.team_id IS NOT NULL AND NEW.status <> 'deleted' THEN
            INSERT INTO database_labels (database_id, team_id, position, label)
            SELECT NEW.id, NEW.team_id, NEW.position, label FROM unnest(NEW.labels) AS label;
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER databases_labelled AFTER INSERT ON databases FOR EACH ROW
    WHEN (NEW.labels <> '{}') EXECUTE FUNCTION index_database_labels()
    """,
    """
    CREATE TRIGGER databases_relabelled AFTER UPDATE ON databases FOR EACH ROW
    WHEN ((OLD.labels <> '{}' OR NEW.labels <> '{}')
          AND (OLD.labels, OLD.team_id, OLD.position, OLD.status = 'deleted')
              IS DISTINCT FROM (NEW.labels, NEW.team_id, NEW.position, NEW.status = 'deleted'))
    EXECUTE FUNCTION index_database_labels()
    """,
)


class _WithIndexes(MigrationManager):
    """Piccolo runs a manager's own SQL before it adds columns; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithIndexes(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for (class_name, tablename), column in _COLUMNS.items():
        manager.add_column(class_name, tablename, "labels", column_class=type(column), params=column._meta.params)
    manager.add_table("DatabaseLabel", "database_labels")
    for own in DatabaseLabel._meta.columns:
        manager.add_column(
            "DatabaseLabel", "database_labels", own._meta.name, column_class=type(own), params=own._meta.params
        )
    once = DatabaseLabel.once
    manager.add_constraint("DatabaseLabel", "database_labels", "once", Unique, params=once._meta.params)
    return manager
