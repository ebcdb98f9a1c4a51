"""Indexes that a column alone can't declare: of several columns, or of the few rows that a query looks for."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T08:00:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "indexes"

_INDEXES = (
    "CREATE INDEX databases_of_team ON databases (team_id, id DESC) WHERE status <> 'deleted'",
    "CREATE INDEX databases_on_host ON databases (host_id) WHERE destroyed_at IS NULL",
    "CREATE INDEX memberships_of_team ON memberships (team_id)",
    "CREATE INDEX api_keys_of_user ON api_keys (user_id)",
    "CREATE INDEX events_to_dispatch ON events (id) WHERE dispatched_at IS NULL",
    "CREATE INDEX events_of_database ON events (database_id)",
    "CREATE INDEX workflow_starts_due ON workflow_starts (next_attempt_at)",
    "CREATE INDEX idempotency_keys_expired ON idempotency_keys (expires_at)",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def create_indexes() -> None:
        for index in _INDEXES:
            await DB.run_ddl(index)

    manager.add_raw(create_indexes)
    return manager
