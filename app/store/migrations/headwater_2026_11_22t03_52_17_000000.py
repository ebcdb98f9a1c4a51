"""Deliveries that wait as rows, and when the endpoint that they wait for is due."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T03:52:17:000000"
VERSION = "1.38.0"
DESCRIPTION = "waiting deliveries"

_STATEMENTS = (
    "ALTER TABLE webhook_endpoints ADD next_attempt_at timestamptz, ADD claimed_by uuid, ADD claimed_until timestamptz",
    "ALTER TABLE webhook_deliveries ADD waiting boolean NOT NULL DEFAULT false",
    # What is promised gets its first attempt from its workflow; all else was waiting in one.
    """
    UPDATE webhook_deliveries d SET waiting = true, next_attempt_at = coalesce(next_attempt_at, now())
    WHERE status = 'pending' AND NOT EXISTS (
        SELECT FROM workflow_starts s WHERE s.workflow = 'DeliverWebhook' AND s.input ->> 'delivery' = d.id::text
    )
    """,
    """
    UPDATE webhook_endpoints w SET next_attempt_at = now()
    WHERE EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_id = w.id AND d.waiting)
    """,
    "DELETE FROM workflow_starts WHERE workflow = 'EndDeliveries'",
    "ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_pending_if_waiting"
    " CHECK (NOT waiting OR status = 'pending' AND next_attempt_at IS NOT NULL)",
    "CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (endpoint_id, next_attempt_at, id) WHERE waiting",
    "CREATE INDEX webhook_endpoints_due ON webhook_endpoints (next_attempt_at) WHERE next_attempt_at IS NOT NULL",
    "CREATE INDEX webhook_endpoints_claimed ON webhook_endpoints (team_id) WHERE claimed_until IS NOT NULL",
)


async def forwards() -> MigrationManager:
    manager = MigrationManager(migration_id=ID, app_name="headwater", description=DESCRIPTION)

    async def add_waiting() -> None:
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)

    manager.add_raw(add_waiting)
    return manager
