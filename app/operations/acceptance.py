"""An operation begins: its row, in the transaction that accepts the change."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from app.contracts.base import Engine
from app.core.context import Actor, current_actor, current_request_id
from app.core.ids import new_uuid
from app.operations.kinds import KINDS, OperationStatus, OperationType, StepStatus
from app.operations.reasons import Reason
from app.operations.records import COLUMNS, OperationRecord, Step
from app.store.session import Statement, fetch_one

_AHEAD = "It was made before anybody asked for it."


class Subject(Protocol):
    """The database that is to be changed."""

    @property
    def id(self) -> int: ...
    @property
    def team_id(self) -> int | None: ...
    @property
    def engine(self) -> Engine: ...


# What the kind took lately, on this engine: read off one index, whatever other kinds took.
_ACCEPT = f"""
WITH o AS (
    INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps, reason, workflow_id, revision,
                            undo, user_id, key_id, request_id, deadline_at, expected_seconds)
    SELECT $1, $2, $3, $4, $5, 'pending', $6::jsonb, $7::jsonb, $8, $9, $10::jsonb, $11, $12, $13,
           coalesce($14, now()) + $15::interval,
           (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FROM (
                SELECT extract(epoch FROM finished_at - created_at)::float8 AS took FROM operations
                WHERE type = $5 AND engine = $4 AND status = 'succeeded' AND workflow_id IS NOT NULL
                ORDER BY finished_at DESC LIMIT 50) lately)
    RETURNING *
)
SELECT {COLUMNS} FROM o JOIN databases d ON d.id = o.database_id
"""  # noqa: S608 - our own words


async def accept(
    type: OperationType,
    database: Subject,
    *,
    workflow_id: str,
    revision: int = 0,
    undo: dict[str, Any] | None = None,
    not_before: datetime | None = None,
    taken: int = 0,
    without: Collection[str] = (),
    reason: Reason | None = None,
) -> OperationRecord | None:
    """Writes a pending operation, in the transaction of its change. None for a database without a team: nobody would
    ever see it.

    `revision` is what the change has to reach; `undo` what a cancellation needs, None where it can't be cancelled;
    `not_before` when it can end at the earliest; `taken` how many of its steps this transaction has taken; `without`
    the steps that this operation doesn't have.
    """
    if database.team_id is None:
        return None
    client = _client()
    kind = KINDS[type]
    names = [step.name for step in kind.steps]
    steps = [Step(name=name, status=StepStatus.SUCCEEDED, attempts=1) for name in names[:taken]]
    steps += [
        Step(name=name, status=StepStatus.SKIPPED if name in without else StepStatus.PENDING) for name in names[taken:]
    ]
    return await fetch_one(
        OperationRecord,
        _ACCEPT,
        new_uuid(),
        database.team_id,
        database.id,
        database.engine.value,
        type.value,
        _json(steps),
        None if reason is None else _json(reason),
        workflow_id,
        revision,
        None if undo is None else _json(undo),
        None if client is None else client.user_id,
        None if client is None else client.key_id,
        current_request_id() or None,
        not_before,
        kind.deadline,
    )


def insertion(type: OperationType, database: Subject, *, at: datetime, uuid: UUID | None = None) -> Statement:
    """The statement that writes the operation of a change that is done as soon as it is accepted: it is born
    `succeeded`. `at` is that moment, `uuid` the operation's uuid. Nothing is announced: nobody can know of it yet."""
    assert database.team_id is not None, "nobody sees what happens to a database without a team"
    client = _client()
    first, *others = (step.name for step in KINDS[type].steps)
    done = Step(name=first, status=StepStatus.SUCCEEDED, started_at=at, finished_at=at, attempts=1)
    skipped = [Step(name=name, status=StepStatus.SKIPPED, detail=_AHEAD) for name in others]
    sql = """
    INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps, user_id, key_id, request_id,
                            expected_seconds, created_at, changed_at, started_at, finished_at)
    SELECT $1, $2, $3, $4, $5, $6, $7::jsonb, $8::bigint, $9::bigint, $10, 0, $11, $11, $11, $11
    WHERE {condition} RETURNING id
    """
    return Statement(
        sql,
        (
            uuid or new_uuid(),
            database.team_id,
            database.id,
            database.engine.value,
            type.value,
            OperationStatus.SUCCEEDED.value,
            _json([done, *skipped]),
            None if client is None else client.user_id,
            None if client is None else client.key_id,
            current_request_id() or None,
            at,
        ),
    )


def _client() -> Actor | None:
    """The client who owns the operation and may cancel it; None if an operator or the service itself began it."""
    actor = current_actor()
    return None if actor is None or actor.as_operator else actor


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
