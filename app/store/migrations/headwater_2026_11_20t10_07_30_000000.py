"""Indexes of blueprints: pages, names that are taken, and the queue before each database."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-20T10:07:30:000000"
VERSION = "1.38.0"
DESCRIPTION = "indexes of blueprints"

_INDEXES = (
    "CREATE INDEX blueprints_in_pages ON blueprints (team_id, (-id)) WHERE deleted_at IS NULL",
    "CREATE INDEX system_blueprints_in_pages ON blueprints ((-id)) WHERE is_system AND deleted_at IS NULL",
    "CREATE UNIQUE INDEX blueprint_slugs ON blueprints (team_id, slug) WHERE deleted_at IS NULL AND NOT is_system",
    "CREATE UNIQUE INDEX system_blueprint_slugs ON blueprints (slug) WHERE deleted_at IS NULL AND is_system",
    "CREATE INDEX applications_of_blueprint ON blueprint_applications (blueprint_id)",
    "CREATE INDEX applications_under_way ON blueprint_applications (database_id, id) WHERE completed_at IS NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def create_indexes() -> None:
        for index in _INDEXES:
            await DB.run_ddl(index)

    manager.add_raw(create_indexes)
    return manager
