"""Gauges of the whole installation, read from our own database at each scrape.

Every process reports the same values, so aggregate them with max, not with sum.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog
from prometheus_client import Metric

from app.store.session import fetch_all

log = structlog.get_logger(__name__)

_STORE_SECONDS = 4.0
"""How long our own database may take. Less than a page waits for: one that says nothing is to be told, too."""


class _Gauge(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    help: str
    sql: str
    """Selects `value`, and the labels."""


class _Reading(msgspec.Struct, frozen=True):
    name: str
    labels: str
    value: float


_HOSTS = """
WITH hosts AS (
    SELECT h.engine, h.region, h.host || ':' || h.port AS host, h.capacity, h.connection_capacity,
           h.connection_capacity::bigint * h.connection_overcommit AS connection_room,
           h.draining::int AS draining, coalesce(h.sick_until > now(), false)::int AS sick,
           count(d.id) AS databases,
           coalesce(sum(d.connections) FILTER (WHERE d.status <> 'deleted' OR d.purpose IS NOT NULL), 0) AS connections
    FROM engine_hosts h LEFT JOIN databases d ON d.host_id = h.id AND d.destroyed_at IS NULL
    WHERE h.removed_at IS NULL GROUP BY h.id
)
"""

_GAUGES = (
    _Gauge(
        name="headwater_databases",
        help="Databases that lie on a host, or are on their way there or away; `deleted` ones wait out their grace.",
        sql="SELECT engine, region, status, count(*) AS value FROM databases"
        " WHERE destroyed_at IS NULL AND team_id IS NOT NULL GROUP BY engine, region, status",
    ),
    _Gauge(
        name="headwater_databases_paused",
        help="Databases that let nobody in, by why; `resuming` ones are on their way back.",
        sql="SELECT engine, region, coalesce(paused_reason, 'resuming') AS reason, count(*) AS value FROM databases"
        " WHERE destroyed_at IS NULL AND status = 'paused' GROUP BY 1, 2, 3",
    ),
    _Gauge(
        name="headwater_databases_frozen",
        help="Databases over their storage limit, which may not write.",
        sql="SELECT engine, region, count(*) AS value FROM databases"
        " WHERE destroyed_at IS NULL AND status <> 'deleted' AND frozen_at IS NOT NULL GROUP BY engine, region",
    ),
    _Gauge(
        name="headwater_databases_unmeasured",
        help="Databases whose storage can't be measured; `headwater check` names those for which that lasts.",
        sql="SELECT d.engine, d.region, count(u.unmeasured_since) AS value"
        " FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id"
        " WHERE d.status IN ('active', 'paused') AND d.team_id IS NOT NULL GROUP BY d.engine, d.region",
    ),
    _Gauge(
        name="headwater_storage_measured_oldest_age_seconds",
        help="How long ago the storage of the database was measured that has waited longest.",
        sql="SELECT d.engine, d.region, extract(epoch FROM now() - min(u.storage_measured_at)) AS value"
        " FROM databases d JOIN database_usage u ON u.database_id = d.id"
        " WHERE d.status IN ('active', 'paused') AND d.restoring_at IS NULL AND u.storage_measured_at IS NOT NULL"
        " GROUP BY d.engine, d.region",
    ),
    _Gauge(
        name="headwater_backups",
        help="Backups that are kept or under way.",
        sql="SELECT engine, region, status, count(*) AS value FROM backups"
        " WHERE status IN ('pending', 'running', 'completed') GROUP BY engine, region, status",
    ),
    _Gauge(
        name="headwater_backups_stored_bytes",
        help="What backups take in the store.",
        sql="SELECT engine, region, coalesce(sum(stored_bytes), 0) AS value FROM backups WHERE status = 'completed'"
        " GROUP BY engine, region",
    ),
    _Gauge(
        name="headwater_backups_waiting_oldest_age_seconds",
        help="How long the backup has waited for its turn that has waited longest; 0 when none does.",
        sql="SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) AS value FROM backups"
        " WHERE status = 'pending' AND admitted_at IS NULL",
    ),
    _Gauge(
        name="headwater_backups_overdue",
        help="Databases whose scheduled backup was due over an hour ago, and was not asked for.",
        sql="SELECT count(*) AS value FROM backup_policies WHERE backup_at < now() - interval '1 hour'",
    ),
    _Gauge(
        name="headwater_backup_proof_oldest_age_seconds",
        help="How long ago the newest proof was made of the database with a policy whose proof is oldest, or its oldest"
        " backup where none was ever proven. Without databases whose own policy wants a test more rarely than every 30"
        " days.",
        # Of backups that are gone, too: many are kept for a shorter time than the one between two tests. Of those which
        # never were proven only the first is read, and only where no other was.
        sql="SELECT engine, region, max(age) AS value FROM ("
        " SELECT d.engine, d.region, extract(epoch FROM now() - coalesce(max(b.proven_at),"
        " (SELECT x.completed_at FROM backups x WHERE x.database_id = d.id AND x.completed_at IS NOT NULL"
        " ORDER BY (-x.id) DESC LIMIT 1))) AS age"
        " FROM backups b JOIN backup_policies p ON p.database_id = b.database_id"
        " JOIN databases d ON d.id = b.database_id"
        " WHERE b.completed_at IS NOT NULL AND (b.status = 'completed' OR b.proven_at IS NOT NULL)"
        " AND d.status <> 'deleted' AND p.backup_at IS NOT NULL AND coalesce(p.test_every_days, 0) <= 30"
        " GROUP BY d.id HAVING bool_or(b.status = 'completed')) proofs GROUP BY engine, region",
    ),
    _Gauge(
        name="headwater_backup_proofs_bad",
        help="Backups that are kept and did not come back as they were, or not at all, by what is known.",
        sql="SELECT r.proof, (SELECT count(*) FROM backups WHERE status = 'completed' AND proof_status = r.proof)"
        " AS value FROM (VALUES ('mismatch'), ('failed')) r (proof)",
    ),
    _Gauge(
        name="headwater_host_databases",
        help="Databases on an engine host.",
        sql="SELECT engine, region, host, databases AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_connections_promised",
        help="The sum of the connection limits of an engine host's databases.",
        sql="SELECT engine, region, host, connections AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_capacity_databases",
        help="Databases that an engine host takes.",
        sql="SELECT engine, region, host, capacity AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_capacity_connections",
        help="The maximum sum of the connection limits of an engine host's databases.",
        sql="SELECT engine, region, host, connection_room AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_connections_limit",
        help="Sessions that tenants may have open on an engine host together, however often each is allocated.",
        sql="SELECT engine, region, host, connection_capacity AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_connections_open",
        help="Sessions that were open on an engine host at the last look, without the administrator's.",
        sql="SELECT h.engine, h.region, h.host || ':' || h.port AS host, w.open AS value"
        " FROM host_connections w JOIN engine_hosts h ON h.id = w.host_id WHERE h.removed_at IS NULL",
    ),
    _Gauge(
        name="headwater_host_connections_short",
        help="1 while an engine host is short of connections: databases with more than their share get no more.",
        sql="SELECT h.engine, h.region, h.host || ':' || h.port AS host, (w.short_since IS NOT NULL)::int AS value"
        " FROM host_connections w JOIN engine_hosts h ON h.id = w.host_id WHERE h.removed_at IS NULL",
    ),
    _Gauge(
        name="headwater_host_databases_held",
        help="Databases that get fewer connections than their limit for now, because their host is short of them.",
        sql="SELECT h.engine, h.region, h.host || ':' || h.port AS host, count(c.id) AS value FROM engine_hosts h"
        " LEFT JOIN databases d ON d.host_id = h.id AND d.destroyed_at IS NULL"
        " LEFT JOIN connection_holds c ON c.database_id = d.id WHERE h.removed_at IS NULL GROUP BY h.id",
    ),
    _Gauge(
        name="headwater_host_sick",
        help="1 for an engine host that failed a moment ago and is passed over.",
        sql="SELECT engine, region, host, sick AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_host_draining",
        help="1 for an engine host that takes no new databases.",
        sql="SELECT engine, region, host, draining AS value FROM hosts",
    ),
    _Gauge(
        name="headwater_pool_ready",
        help="Databases that wait in a warm pool and may be claimed.",
        # An empty pool is reported as 0.
        sql="SELECT s.engine, s.region, count(d.id) AS value FROM (SELECT DISTINCT engine, region FROM engine_hosts"
        " WHERE removed_at IS NULL) s"
        " LEFT JOIN (databases d JOIN engine_hosts h ON h.id = d.host_id AND NOT h.draining"
        " AND h.sick_until IS NULL) ON d.engine = s.engine AND d.region = s.region"
        " AND d.team_id IS NULL AND d.status = 'active' AND d.destroyed_at IS NULL GROUP BY s.engine, s.region",
    ),
    _Gauge(
        name="headwater_pool_size",
        help="How many there are to be.",
        sql="SELECT engine, region, coalesce(size, setting) AS value FROM pool_targets"
        " WHERE coalesce(size, setting) IS NOT NULL",
    ),
    _Gauge(
        name="headwater_findings",
        help="What consistency checks found and is not over, by rule.",
        sql="SELECT rule, count(*) AS value FROM findings GROUP BY rule",
    ),
    _Gauge(
        name="headwater_findings_oldest_age_seconds",
        help="How long ago the first of them was seen; 0 when there are none.",
        sql="SELECT coalesce(extract(epoch FROM now() - min(first_seen_at)), 0) AS value FROM findings",
    ),
    _Gauge(
        name="headwater_workflow_starts_pending",
        help="Requested workflows that Temporal has not accepted yet.",
        sql="SELECT count(*) AS value FROM workflow_starts",
    ),
    _Gauge(
        name="headwater_workflow_starts_oldest_age_seconds",
        help="How long the oldest of them has waited; 0 when none does.",
        sql="SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) AS value FROM workflow_starts",
    ),
    _Gauge(
        name="headwater_events_pending",
        help="Events that have not been made into deliveries.",
        sql="SELECT count(*) AS value FROM events WHERE dispatched_at IS NULL",
    ),
    _Gauge(
        name="headwater_events_oldest_age_seconds",
        help="How long the oldest of them has waited; 0 when none does.",
        sql="SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) AS value FROM events"
        " WHERE dispatched_at IS NULL",
    ),
    _Gauge(
        name="headwater_webhook_deliveries_pending",
        help="Deliveries that are not over.",
        sql="SELECT count(*) AS value FROM webhook_deliveries WHERE status = 'pending'",
    ),
    _Gauge(
        name="headwater_webhook_deliveries_waiting",
        help="Those that wait as rows, by reason: `receiver` hangs, `schedule` (a retry), `turn` (due).",
        # Reported as 0 when none waits, so that alerts have a series.
        sql="SELECT r.reason, (SELECT count(*) FROM webhook_deliveries d JOIN webhook_endpoints w"
        " ON w.id = d.endpoint_id WHERE d.waiting AND r.reason = CASE WHEN w.circuit_until IS NOT NULL THEN 'receiver'"
        " WHEN d.next_attempt_at > now() THEN 'schedule' ELSE 'turn' END) AS value"
        " FROM (VALUES ('receiver'), ('schedule'), ('turn')) r (reason)",
    ),
    _Gauge(
        name="headwater_webhook_endpoints_hanging",
        help="Endpoints whose receiver hangs: it is sent nothing but a probe from time to time.",
        sql="SELECT count(*) AS value FROM webhook_endpoints WHERE circuit_until IS NOT NULL AND revoked_at IS NULL",
    ),
    _Gauge(
        name="headwater_audit_unsealed_oldest_age_seconds",
        help="How long ago the first event of the audit log happened that is not sealed; 0 when all are.",
        # In the order of the seals, of which the newest is the last.
        sql="SELECT coalesce(extract(epoch FROM now() - min(e.at)), 0) AS value FROM (SELECT at FROM audit_events"
        " WHERE (batch, id) > (SELECT coalesce(max(batch), -1), coalesce(max(last_id), -1) FROM"
        " (SELECT batch, last_id FROM audit_seals ORDER BY id DESC LIMIT 1) newest)"
        " ORDER BY batch, id LIMIT 1) e",
    ),
)

_QUERY = _HOSTS + "\nUNION ALL\n".join(
    f"SELECT '{gauge.name}' AS name, (to_jsonb(q) - 'value')::text AS labels, q.value::float8 AS value"  # noqa: S608
    f" FROM ({gauge.sql}) q"
    for gauge in _GAUGES
)


async def installation_gauges() -> Sequence[Metric]:
    """All gauges, in one query; only `headwater_store_up` when our own database can't be reached, or says nothing for
    four seconds."""
    up = Metric("headwater_store_up", "1 when Headwater's own database answered in time.", "gauge")
    try:
        readings = await _readings()
    except Exception as fault:
        log.warning("store_unreachable", reason=str(fault) or type(fault).__name__)
        up.add_sample(up.name, {}, 0)
        return [up]
    up.add_sample(up.name, {}, 1)
    metrics = {gauge.name: Metric(gauge.name, gauge.help, "gauge") for gauge in _GAUGES}
    for reading in readings:
        metrics[reading.name].add_sample(reading.name, msgspec.json.decode(reading.labels), reading.value)
    return [up, *metrics.values()]


async def _readings() -> list[_Reading]:
    """Raises `TimeoutError` after `_STORE_SECONDS`."""
    looking = asyncio.create_task(fetch_all(_Reading, _QUERY))
    looking.add_done_callback(_retrieve)
    try:
        # Its end is not waited for: a cancelled statement keeps its connection until the server has confirmed that.
        await asyncio.wait((looking,), timeout=_STORE_SECONDS)
        if not looking.done():
            raise TimeoutError(f"no answer within {_STORE_SECONDS:g} seconds")
        return looking.result()
    finally:
        looking.cancel()


def _retrieve(task: asyncio.Task[list[_Reading]]) -> None:
    """Retrieves a failure that nobody waits for any more: asyncio complains of one that nobody retrieves."""
    if not task.cancelled():
        task.exception()
