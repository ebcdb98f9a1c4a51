"""What upkeep has to know of webhooks: which rows have had their time, and what must never be found."""

SWEEPS = (
    (
        "events that were delivered, or given up, a month ago, with their deliveries",
        """
        DELETE FROM events WHERE id IN (
            SELECT e.id FROM events e
            WHERE e.dispatched_at < now() - interval '30 days' AND NOT EXISTS (
                SELECT 1 FROM webhook_deliveries d
                WHERE d.event_id = e.id AND (d.status = 'pending' OR d.finished_at > now() - interval '30 days'))
            ORDER BY e.id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
    (
        "pings of a month ago",
        """
        DELETE FROM webhook_deliveries WHERE id IN (
            SELECT id FROM webhook_deliveries
            WHERE event_id IS NULL AND status <> 'pending' AND finished_at < now() - interval '30 days'
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
    (
        "signing secrets that were replaced and have expired",
        """
        DELETE FROM webhook_secrets WHERE id IN (
            SELECT id FROM webhook_secrets WHERE expires_at < now() - interval '1 day'
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
        """,
    ),
)
"""Each in words, and as a statement that deletes at most `$1` rows, the oldest first. What hangs on them goes along."""

RULES = (
    """
    SELECT 'event_not_dispatched' AS rule, uuid::text AS subject,
           type || ' of ' || created_at || ' was taken to no endpoint' AS detail
    FROM events WHERE dispatched_at IS NULL AND created_at < now() - $1::interval
    """,
    """
    SELECT 'event_without_delivery' AS rule, e.uuid::text AS subject,
           e.type || ' of ' || e.created_at || ' has no delivery for endpoint ' || w.id AS detail
    FROM events e JOIN webhook_endpoints w ON w.team_id = e.team_id AND w.created_at < e.created_at
    WHERE e.dispatched_at < now() - $1::interval AND e.dispatched_at > now() - interval '7 days'
      AND w.revoked_at IS NULL AND (w.events = '{}' OR e.type = any(w.events))
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = e.id AND d.endpoint_id = w.id)
    """,
    """
    SELECT 'delivery_stuck' AS rule, id::text AS subject,
           event_type || ' to endpoint ' || endpoint_id || ' was due at ' || next_attempt_at AS detail
    FROM webhook_deliveries
    WHERE status = 'pending' AND next_attempt_at < now() - greatest($1::interval, interval '10 minutes')
    """,
)
"""Each finds what has been between two states for longer than `$1`: rule, subject and detail of a violation."""
