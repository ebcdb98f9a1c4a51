"""What became of a user's questions, and how many their team may still ask today."""

from datetime import datetime
from uuid import UUID

import msgspec

from app.auth.principal import Principal
from app.databases import records as databases
from app.dialects.verdict import SqlClass
from app.queries.records import ALLOWANCES
from app.queries.schemas import QueryAllowance, QueryExecutionView
from app.store.session import fetch_all, fetch_one


class OwnQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of `query_executions`, with its database's uuid."""

    id: int
    team_id: int
    database: UUID | None
    question: str
    model: str
    sql: str | None
    declared_kind: str | None
    sql_class: str | None
    outcome: str | None
    error_code: str | None
    reason: str | None
    row_count: int | None
    duration_ms: int | None
    created_at: datetime


# What a key for some databases doesn't reach isn't there for it.
_OWN = """
SELECT q.id, q.team_id, d.uuid AS database, q.question, q.model, q.sql, q.declared_kind, q.sql_class, q.outcome,
       q.error_code, q.reason, q.row_count, q.duration_ms, q.created_at
FROM query_executions q LEFT JOIN databases d ON d.id = q.database_id
WHERE q.user_id = $1 AND q.team_id = any($2::bigint[]) AND ($3::uuid[] IS NULL OR d.uuid = any($3::uuid[]))
"""


async def find_own(principal: Principal, query: int) -> OwnQuestion | None:
    """A question of this user's, in the teams in which they may ask."""
    return await fetch_one(OwnQuestion, f"{_OWN} AND q.id = $4", *_asked_by(principal), query)


async def list_own(principal: Principal, *, database: UUID | None, after: int | None, limit: int) -> list[OwnQuestion]:
    """The user's questions, about `database` unless None, newest first, from the one that follows `after` on."""
    page = "($4::uuid IS NULL OR d.uuid = $4) AND ($5::bigint IS NULL OR q.id < $5) ORDER BY q.id DESC LIMIT $6"
    return await fetch_all(OwnQuestion, f"{_OWN} AND {page}", *_asked_by(principal), database, after, limit)


def view(question: OwnQuestion) -> QueryExecutionView:
    return QueryExecutionView(
        id=question.id,
        database_uuid=question.database,
        query=question.question,
        sql=question.sql,
        type=None if question.sql_class is None else SqlClass(question.sql_class),
        outcome=question.outcome,
        error_code=question.error_code,
        reason=question.reason,
        row_count=question.row_count,
        duration_ms=question.duration_ms,
        created_at=question.created_at,
    )


class _Today(msgspec.Struct, frozen=True):
    tier: str
    used: int
    resets_at: datetime


# Counted as `take_question_place` does.
_TODAY = """
SELECT t.tier, date_trunc('day', now(), 'UTC') + interval '1 day' AS resets_at, (
    SELECT count(*) FROM query_executions q
    WHERE q.team_id = t.id AND q.created_at >= date_trunc('day', now(), 'UTC')
      AND q.counts IS NOT FALSE AND (q.counts OR q.reserved_until > now())) AS used
FROM teams t WHERE t.id = $1
"""


async def allowance_of(principal: Principal, database: UUID) -> QueryAllowance:
    """The allowance of the team that owns the database. Raises `NotFound`."""
    found = await databases.get_owned(database, principal.team_ids)
    assert found.team_id is not None, "it is a team's"
    today = await fetch_one(_Today, _TODAY, found.team_id)
    assert today is not None, "teams that own something stay"
    per_day = ALLOWANCES[today.tier]
    return QueryAllowance(
        team_id=found.team_id,
        per_day=per_day,
        used=today.used,
        remaining=None if per_day is None else max(0, per_day - today.used),
        resets_at=today.resets_at,
    )


def _asked_by(principal: Principal) -> tuple[int, list[int], list[UUID] | None]:
    return principal.user_id, principal.team_ids, principal.databases
