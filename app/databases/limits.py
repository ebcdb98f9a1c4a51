"""A database's limits: what its row says, and bringing that to its engine."""

from uuid import UUID

import msgspec

from app.contracts.databases import ApplyLimits, ApplyLimitsInput
from app.contracts.queues import limits_workflow_id
from app.core.errors import TooManyUnderWay
from app.databases.records import DatabaseRecord
from app.operations.acceptance import accept
from app.operations.ends import finish
from app.operations.kinds import OperationType
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_start
from app.quotas.plans import Plans, Quotas, limits_in_force
from app.store.notify import announce
from app.store.session import fetch_all, fetch_scalar, fetch_value, transaction

MOST_PENDING = 50
"""The most changes of one database's limits, and of its access, that wait for its engine. Each has a workflow, and one
transaction ends the operations of all."""
_MOST = 200
"""The most databases that follow their plan in one run; the next run has the others."""


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that a change took the place of, for its cancellation."""

    quotas: Quotas
    connections: int


def check_pending(changes: str, revision: int, applied: int) -> None:
    """Raises `TooManyUnderWay` where the engine is as many revisions behind as it may be; `changes` is a plural noun in
    snake case."""
    if revision - applied >= MOST_PENDING:
        raise TooManyUnderWay(changes, MOST_PENDING, whose="A database")


async def change_limits(
    record: DatabaseRecord, quotas: Quotas, connections: int, *, accepted: bool = True
) -> PendingStart:
    """Writes the overrides, and the number of connections that is in force with them, and requests the workflow that
    applies them. Call it in a transaction that holds the row locked. Without `accepted` the change is no operation by
    itself: it undoes one."""
    revision = await fetch_scalar(
        int,
        """
        UPDATE databases SET storage_hard_limit_gb = $2, connection_hard_limit = $3, warning_threshold_pct = $4,
               connections = $5, limits_revision = limits_revision + 1, updated_at = now()
        WHERE id = $1 RETURNING limits_revision
        """,
        record.id,
        quotas.storage_hard_limit_gb,
        quotas.connection_hard_limit,
        quotas.warning_threshold_pct,
        connections,
    )
    before = Before(quotas=record.quotas, connections=record.connections)
    return await request_limits(record, revision, before=before if accepted else None)


async def record_limits_applied(database: UUID, revision: int) -> None:
    """Records that the engine has the limits of this revision."""
    async with transaction():
        written = await fetch_value(
            int,
            "UPDATE databases SET limits_applied = greatest(limits_applied, $2) WHERE uuid = $1 RETURNING id",
            database,
            revision,
        )
        if written is not None:
            await finish(written, (OperationType.LIMITS,), revision=revision)
        await announce(database)


# What its users have been given stays theirs, with one for the database's own login.
_LEAST = "(SELECT coalesce(sum(connection_limit) + 1, 0)::integer FROM database_users WHERE database_id = d.id)"
# At random within those that get more: the host of some may have no room, and they must not take others' turn for ever.
_BEHIND = f"""
SELECT d.uuid, d.host_id, wanted.connections - d.connections AS more
FROM databases d JOIN unnest($1::text[], $2::integer[]) AS p (plan, connections) ON p.plan = d.plan
CROSS JOIN LATERAL (SELECT greatest(p.connections, {_LEAST}) AS connections) AS wanted
WHERE d.status IN ('active', 'paused') AND d.connection_hard_limit IS NULL AND d.connections <> wanted.connections
ORDER BY wanted.connections > d.connections, random() LIMIT $3
"""  # noqa: S608 - our own words


class DatabaseBehind(msgspec.Struct, frozen=True):
    """A database whose plan allows another number of connections by now."""

    uuid: UUID
    host_id: int
    more: int
    """How many more connections it would have; below zero for fewer."""


async def list_behind(plans: Plans) -> list[DatabaseBehind]:
    """Some of those that have no limit of their own, first those that get fewer connections."""
    connections = [plan.limits.connection_hard_limit for plan in plans.by_name.values()]
    return await fetch_all(DatabaseBehind, _BEHIND, list(plans.by_name), connections, _MOST)


async def get_limit_of_plan(plans: Plans, record: DatabaseRecord) -> int:
    """How many connections its plan allows by now, with its overrides, but not fewer than its users have."""
    of_plan = limits_in_force(plans, record.plan, record.quotas).connection_hard_limit
    least = await fetch_scalar(int, f"SELECT {_LEAST} FROM databases d WHERE d.id = $1", record.id)  # noqa: S608 - ours
    return max(of_plan, least)


async def request_limits(record: DatabaseRecord, revision: int, *, before: Before | None) -> PendingStart:
    """Requests the workflow that applies the limits, in the transaction that changed them and raised `limits_revision`
    to this. `before` is what a cancellation of the operation brings back; without it there is no operation."""
    workflow_id = limits_workflow_id(record.uuid, revision)
    if before is not None:
        undo = msgspec.to_builtins(before)
        await accept(OperationType.LIMITS, record, workflow_id=workflow_id, revision=revision, undo=undo)
    return await request_start(
        ApplyLimits,
        workflow_id,
        ApplyLimitsInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            revision=revision,
        ),
        priority=INTERACTIVE,
    )
