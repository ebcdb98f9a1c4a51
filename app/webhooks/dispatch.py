"""From committed events to deliveries: one for each endpoint that wants the event. Each delivery waits for its
endpoint, whose attempts a webhook worker makes when they are due (`app.webhooks.waiting`)."""

from app.outbox.events import take_undispatched
from app.store.session import fetch_values, transaction
from app.webhooks import waiting


async def dispatch(limit: int, *, first_wait: float) -> int:
    """Dispatches events, and returns how many. It is one transaction: an event is dispatched when its deliveries are
    written and their endpoints are due. `first_wait` is the schedule's first entry, in seconds, a fifth more or less.
    Any number of processes may do so side by side."""
    async with transaction():
        events = await take_undispatched(limit)
        if not events:
            return 0
        endpoints = await fetch_values(int, _INSERT, events, first_wait)
        await waiting.announce(sorted(set(endpoints)), 0.8 * first_wait)
    return len(events)


_INSERT = """
INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_id, event_type, next_attempt_at, waiting)
SELECT 'msg_' || replace(e.uuid::text, '-', '') || '_' || w.id, w.id, e.id, e.type,
       now() + make_interval(secs => $2 * (0.8 + 0.4 * random())), true
FROM events e JOIN webhook_endpoints w ON w.team_id = e.team_id
WHERE e.id = any($1::bigint[]) AND w.revoked_at IS NULL AND (w.events = '{}' OR e.type = any(w.events))
ORDER BY e.id, w.id
ON CONFLICT (event_id, endpoint_id) DO NOTHING
RETURNING endpoint_id
"""
