"""SQL that a question was translated to, shown to whoever asked, and executed once they say so."""

import time
from uuid import UUID

import msgspec

from app.auth.principal import Principal
from app.core.errors import NotFound, QueryAlreadyExecuted, TooManyUnderWay
from app.queries.history import find_own
from app.queries.records import Execution
from app.queries.targets import QueryTarget
from app.store.session import execute, fetch_scalar

TRANSLATED = "translated"
"""The outcome of a question whose SQL nobody has executed."""
_LIFETIME_MINUTES = 10
"""After that the schema may be another one than the SQL was made for."""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('headwater questions ' || $1::bigint, 0))"
_UNDER_WAY = """
SELECT count(*) FROM query_executions
WHERE team_id = $1 AND outcome IS NULL AND (counts OR reserved_until > now())
"""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    database: UUID
    question: str
    model: str
    sql: str
    declared_kind: str | None


async def find(principal: Principal, query: int) -> Preview:
    """Raises `NotFound` of what is no question of this user's, and `QueryAlreadyExecuted`."""
    found = await find_own(principal, query)
    if found is None or found.database is None:
        raise NotFound("question")
    if found.outcome != TRANSLATED or found.sql is None:
        raise QueryAlreadyExecuted
    return Preview(
        id=found.id,
        database=found.database,
        question=found.question,
        model=found.model,
        sql=found.sql,
        declared_kind=found.declared_kind,
    )


async def begin(
    preview: Preview, principal: Principal, target: QueryTarget, place_seconds: float, *, at_once: int
) -> Execution:
    """Begins an execution with a record of its own, in the request's transaction; it takes no more of the day's
    allowance. The caller who marks the translation first executes it. Raises `QueryAlreadyExecuted` for the others,
    and `TooManyUnderWay` for everyone where `at_once` of the team's questions are under way."""
    started = time.monotonic()
    # As in `take_question_place`, so that no two count past each other.
    await execute(_LOCK, target.team_id)
    if await fetch_scalar(int, _UNDER_WAY, target.team_id) >= at_once:
        raise TooManyUnderWay("query_executions", at_once)
    marked = await execute(
        """
        UPDATE query_executions SET outcome = 'executed'
        WHERE id = $1 AND outcome = $2 AND created_at > now() - make_interval(mins => $3)
        """,
        preview.id,
        TRANSLATED,
        _LIFETIME_MINUTES,
    )
    if not marked:
        raise QueryAlreadyExecuted
    execution = await fetch_scalar(
        int,
        """
        INSERT INTO query_executions (team_id, user_id, database_id, question, model, counts, reserved_until)
        VALUES ($1, $2, $3, $4, $5, false, now() + make_interval(secs => $6)) RETURNING id
        """,
        target.team_id,
        principal.user_id,
        target.id,
        preview.question,
        preview.model,
        place_seconds,
    )
    return Execution(
        id=execution, started=started, step="execute", sql=preview.sql, declared_kind=preview.declared_kind
    )
