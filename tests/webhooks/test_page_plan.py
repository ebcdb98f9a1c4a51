"""A page of deliveries costs the same whatever it is filtered by, whichever plan PostgreSQL settles on."""

import asyncpg
import pytest

from app.contracts.webhooks import DeliveryStatus
from app.outbox.event_types import EventType
from app.store.session import execute, fetch_scalar
from app.webhooks import records
from tests.support.in_process import LoneApi
from tests.support.plans import PLANS, Noted
from tests.support.store import execute_at

ROWS = 20_000
LIMIT = 26
_ENDPOINT = "INSERT INTO webhook_endpoints (team_id, url) VALUES ($1, 'https://a.example') RETURNING id"
_SENT = """
INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, status, attempt_count, finished_at)
SELECT 'msg_' || n, $1::bigint, CASE WHEN n % 2 = 0 THEN 'database.paused' ELSE 'database.resumed' END,
       CASE WHEN n % 2 = 0 THEN 'delivered' ELSE 'failed' END, 1, now()
FROM generate_series(1, $2::int) n
"""


async def test_filters_that_never_meet_read_nothing(
    lone: LoneApi, control_admin_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of one event arrived, and all of another one failed."""
    caller = await lone.caller()
    endpoint = await fetch_scalar(int, _ENDPOINT, caller.team_id)
    await execute(_SENT, endpoint, ROWS)
    await execute_at(control_admin_dsn, "VACUUM ANALYZE webhook_deliveries")
    noted = Noted()
    monkeypatch.setattr(records, "fetch_all", noted)
    connection = await asyncpg.connect(lone.control_dsn)
    paused, failed = EventType.DATABASE_PAUSED, DeliveryStatus.FAILED
    try:
        for plan in PLANS:
            await connection.execute(f"SET plan_cache_mode = {plan}")
            for event_type, status, found in ((paused, failed, 0), (paused, None, LIMIT), (None, failed, LIMIT)):
                page = await records.list_deliveries(
                    endpoint, status=status, event_type=event_type, after=None, limit=LIMIT
                )
                assert len(page) == found
                assert [one.id for one in page] == sorted((one.id for one in page), reverse=True)
                # Those that the page is chosen by, and the page's own.
                (read,) = await noted.rows_read(connection, "webhook_deliveries")
                assert read <= 2 * found, (plan, event_type, status, read)
    finally:
        await connection.close()
