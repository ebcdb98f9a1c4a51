"""Rules for our own records: nothing stays in a transitional state."""

from datetime import timedelta

from app.store.session import fetch_all
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.operations import ASTRAY

# How long filling lasts depends on the data. Where it lasts too long, its operation is overdue.
_BEING_FILLED = (
    "(restoring_at IS NOT NULL"
    " AND EXISTS (SELECT FROM restorations r WHERE r.database_id = databases.id AND r.ended_at IS NULL))"
)
_RULES = (
    f"""
    SELECT 'provisioning_stuck' AS rule, uuid::text AS subject,
           'provisioning since ' || created_at || ' on host ' || host_id AS detail
    FROM databases WHERE status = 'provisioning' AND created_at < now() - $1::interval AND NOT {_BEING_FILLED}
    """,  # noqa: S608 - our own words
    """
    SELECT 'revocation_stuck' AS rule, uuid::text AS subject,
           'deleted at ' || deleted_at || ', but its access has not been ended' AS detail
    FROM databases
    WHERE status = 'deleted' AND remote_since IS NOT NULL AND revoked_at IS NULL AND destroyed_at IS NULL
      AND deleted_at < now() - $1::interval
    """,
    """
    SELECT 'destruction_stuck' AS rule, uuid::text AS subject,
           'to be destroyed at ' || destroy_at || ', but still on host ' || host_id AS detail
    FROM databases WHERE status = 'deleted' AND destroyed_at IS NULL AND destroy_at < now() - $1::interval
    """,
    """
    SELECT 'expiry_stuck' AS rule, uuid::text AS subject, 'to delete itself at ' || expires_at AS detail
    FROM databases WHERE status <> 'deleted' AND expires_at < now() - $1::interval
    """,
    """
    SELECT 'limits_stuck' AS rule, uuid::text AS subject,
           'its limits, changed at ' || updated_at || ', are not in force' AS detail
    FROM databases
    WHERE status IN ('active', 'paused') AND limits_applied < limits_revision
      AND updated_at < now() - $1::interval
    """,
    f"""
    SELECT 'access_stuck' AS rule, uuid::text AS subject,
           'its access, changed at ' || access_changed_at || ', is not in force' AS detail
    FROM databases
    WHERE status IN ('active', 'paused') AND access_applied < access_revision
      AND access_changed_at < now() - $1::interval AND NOT {_BEING_FILLED}
    """,  # noqa: S608 - our own words
    """
    SELECT 'rotation_stuck' AS rule, d.uuid::text AS subject,
           'its rotation ' || r.uuid || ' is ' || r.status || ' since ' || r.changed_at AS detail
    FROM credential_rotations r JOIN databases d ON d.id = r.database_id
    WHERE r.status IN ('pending', 'cancelling') AND r.changed_at < now() - $1::interval
    """,
    """
    SELECT 'retirement_overdue' AS rule, d.uuid::text AS subject,
           'its previous credentials were to end at ' || r.retires_at || ', and have not' AS detail
    FROM credential_rotations r JOIN databases d ON d.id = r.database_id
    WHERE r.status IN ('overlapping', 'retiring') AND r.retires_at < now() - $1::interval
    """,
    """
    SELECT 'user_stuck' AS rule, d.uuid::text AS subject,
           'its user ' || u.login_name || ' is ' || u.status || ' since ' || u.changed_at AS detail
    FROM database_users u JOIN databases d ON d.id = u.database_id
    WHERE u.status <> 'active' AND u.changed_at < now() - $1::interval
    """,
    """
    SELECT 'user_expired' AS rule, d.uuid::text AS subject,
           'its user ' || u.login_name || ' was to end at ' || u.expires_at || ', and has not' AS detail
    FROM database_users u JOIN databases d ON d.id = u.database_id
    WHERE u.status = 'active' AND u.expires_at < now() - $1::interval
    """,
    """
    SELECT 'storage_unmeasured' AS rule, d.uuid::text AS subject,
           'its storage can''t be measured since ' || u.unmeasured_since || ': ' || u.measure_failure AS detail
    FROM database_usage u JOIN databases d ON d.id = u.database_id
    WHERE d.status IN ('active', 'paused') AND d.restoring_at IS NULL
      AND u.unmeasured_since < now() - greatest($1::interval, interval '15 minutes')
    """,
    """
    SELECT 'connections_held' AS rule, d.uuid::text AS subject,
           'gets at most ' || c.at_most || ' connections since ' || c.created_at
           || CASE WHEN w.looked_at > now() - interval '5 minutes' THEN ', and its host is not short of them'
                   ELSE ', and nobody looks after those of its host' END AS detail
    FROM connection_holds c JOIN databases d ON d.id = c.database_id
    LEFT JOIN host_connections w ON w.host_id = d.host_id
    WHERE c.created_at < now() - greatest($1::interval, interval '5 minutes')
      AND (w.short_since IS NULL OR w.looked_at <= now() - interval '5 minutes')
    """,
    """
    SELECT 'usage_not_closed' AS rule, 'usage' AS subject,
           'the ledger of usage is closed through ' || closed_through || ' only' AS detail
    FROM usage_clock
    WHERE closed_through < now() - 2 * make_interval(secs => period_seconds) - greatest($1::interval, interval '1 hour')
    """,
    """
    SELECT 'usage_not_metered' AS rule, d.uuid::text AS subject,
           'the meter of its usage is not what the database is' AS detail
    FROM databases d
    LEFT JOIN usage_meters m ON m.database_uuid = d.uuid LEFT JOIN database_usage u ON u.database_id = d.id
    WHERE d.team_id IS NOT NULL AND d.status IN ('active', 'paused') AND d.updated_at < now() - $1::interval
      AND (coalesce(m.running, false) <> (d.status = 'active') OR m.team_id <> d.team_id
           OR m.storage_bytes <> u.storage_bytes)
    """,
    """
    SELECT 'application_stuck' AS rule, a.id::text AS subject,
           a.status || ' since ' || coalesce(a.started_at, a.created_at) || ' on database ' || d.uuid AS detail
    FROM blueprint_applications a JOIN databases d ON d.id = a.database_id
    WHERE a.completed_at IS NULL AND d.status <> 'provisioning'
      AND coalesce(a.started_at, a.created_at) < now() - greatest($1::interval, interval '1 hour')
    """,
    # While its workflow waits for a host or for the store, it changes with each attempt.
    """
    SELECT 'backup_stuck' AS rule, uuid::text AS subject,
           status || ' since ' || coalesce(started_at, created_at) || ', of database ' || database_uuid
           || ', and nothing was heard of it since ' || greatest(changed_at, beat_at) AS detail
    FROM backups WHERE status IN ('pending', 'running') AND admitted_at IS NOT NULL
      AND greatest(changed_at, beat_at) < now() - greatest($1::interval, interval '15 minutes')
    """,
    """
    SELECT 'backup_overdue' AS rule, d.uuid::text AS subject,
           'its backup was due at ' || p.backup_at || ', and was not asked for' AS detail
    FROM backup_policies p JOIN databases d ON d.id = p.database_id
    WHERE d.status IN ('active', 'paused') AND p.backup_at < now() - greatest($1::interval, interval '1 hour')
    """,
    """
    SELECT 'restore_test_overdue' AS rule, d.uuid::text AS subject,
           'a restore test of its newest backup was due at ' || p.test_at AS detail
    FROM backup_policies p JOIN databases d ON d.id = p.database_id
    WHERE p.test_at < now() - greatest($1::interval, interval '1 day')
    """,
    """
    SELECT 'backup_not_as_it_was' AS rule, uuid::text AS subject,
           'a restore test at ' || proof_changed_at || ' ended as ' || proof_status
           || coalesce(': ' || proof_error, '') AS detail
    FROM backups WHERE status = 'completed' AND proof_status IN ('mismatch', 'failed') AND $1::interval IS NOT NULL
    """,
    """
    SELECT 'backup_not_removed' AS rule, uuid::text AS subject,
           status || ' since ' || changed_at || ', and still in the store' AS detail
    FROM backups WHERE status IN ('failed', 'cancelled', 'expired', 'deleted') AND removed_at IS NULL
      AND greatest(changed_at, locked_until) < now() - greatest($1::interval, interval '1 hour')
    """,
    """
    SELECT 'restore_test_stuck' AS rule, uuid::text AS subject,
           'being tested since ' || proof_changed_at || ', and nothing was heard of it since '
           || greatest(proof_changed_at, proof_beat_at) AS detail
    FROM backups WHERE proof_status = 'running' AND status = 'completed'
      AND greatest(proof_changed_at, proof_beat_at) < now() - greatest($1::interval, interval '15 minutes')
    """,
    """
    SELECT 'workflow_start_stuck' AS rule, workflow_id AS subject,
           'asked for at ' || created_at || coalesce(': ' || last_error, '') AS detail
    FROM workflow_starts WHERE created_at < now() - $1::interval
    """,
    """
    SELECT 'event_stuck' AS rule, uuid::text AS subject,
           type || ' of ' || created_at || ' has not been made into deliveries' AS detail
    FROM events WHERE dispatched_at IS NULL AND created_at < now() - $1::interval
    """,
    # An endpoint created at the same moment may be newer than the event, and so may what it wants: only the audit log
    # says since when it wants that.
    """
    SELECT 'event_without_delivery' AS rule, e.uuid::text AS subject,
           e.type || ' of ' || e.created_at || ' has no delivery for endpoint ' || w.id AS detail
    FROM events e
    JOIN webhook_endpoints w ON w.team_id = e.team_id AND w.revoked_at IS NULL
     AND (w.events = '{}' OR e.type = any(w.events)) AND w.created_at < e.created_at - interval '1 minute'
    WHERE e.dispatched_at < now() - $1::interval AND e.created_at > now() - interval '1 day'
      AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_id = e.id AND d.endpoint_id = w.id)
      AND NOT EXISTS (
          SELECT FROM audit_events a
          WHERE a.team_id = w.team_id AND a.object = 'webhook_endpoint' AND a.subject_id = w.id::text
            AND a.action = 'webhook_endpoint.change' AND a.outcome = 'succeeded' AND a.changes ? 'events'
            AND a.at > now() - interval '1 day 1 minute' AND a.at > e.created_at - interval '1 minute')
    """,
    # A waiting delivery is due when its endpoint is: one that hangs is probed later, and a busy one is served again and
    # again. Neither is stuck.
    """
    SELECT 'delivery_stuck' AS rule, d.webhook_id AS subject,
           d.event_type || ' to endpoint ' || d.endpoint_id || ' was due at ' || d.next_attempt_at AS detail
    FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id
    WHERE d.status = 'pending' AND d.next_attempt_at < now() - greatest($1::interval, interval '10 minutes')
      AND (NOT d.waiting OR w.next_attempt_at IS NULL
           OR coalesce(w.claimed_until, w.next_attempt_at) < now() - greatest($1::interval, interval '10 minutes'))
    """,
    """
    SELECT 'idempotency_key_stuck' AS rule, user_id || '/' || key AS subject,
           'in flight since ' || created_at || ' and still held: no retry can take it over' AS detail
    FROM idempotency_keys
    WHERE response_status IS NULL AND locked_until > now()
      AND created_at < now() - greatest($1::interval, interval '5 minutes')
    """,
)


_OPERATIONS = (
    """
    SELECT 'operation_overdue' AS rule, o.uuid::text AS subject,
           o.type || ' of database ' || d.uuid || ' was to end by ' || o.deadline_at
           || coalesce('. ' || (o.reason ->> 'message'), '') AS detail
    FROM operations o JOIN databases d ON d.id = o.database_id
    WHERE o.finished_at IS NULL AND o.deadline_at < now() AND $1::interval IS NOT NULL
    """,
    f"""
    SELECT 'operation_astray' AS rule, uuid::text AS subject,
           type || ' of database ' || database || ' is open, although it is over: ' || outcome AS detail
    FROM ({ASTRAY}) astray
    """,  # noqa: S608 - our own words
)


async def check_records(patience: timedelta) -> list[Violation]:
    """Everything that has been in transition for longer than `patience`."""
    return [violation for rule in (*_RULES, *_OPERATIONS) for violation in await fetch_all(Violation, rule, patience)]
