"""The record of each question, and the day's allowance that is counted from it.

A question takes a place before the model is asked, and the place is given back when no SQL comes of it. A place whose
process died frees itself at `reserved_until`: there is no counter that could be left wrong.

Only what must outlast a crash of our own database waits for its disk: the note before something is changed, and the
end. A place or a read's note that such a crash forgets belongs to a question that nobody has an answer to.
"""

import time
from datetime import timedelta
from typing import Literal

import msgspec

from app.auth.principal import Principal
from app.core.errors import QueryAllowanceExceeded, TooManyUnderWay
from app.queries.targets import QueryTarget
from app.quotas.plans import Plans
from app.store.session import execute, fetch_exists, fetch_scalar, fetch_value

ALLOWANCES: dict[str, int | None] = {"free": 10, "pro": 500, "enterprise": None}
"""Questions a day (UTC) of a team, by its tier; None means no limit."""

_TODAY = "date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"
# A function: counting comes after the team's lock, in one round trip.
_TAKE = "SELECT take_question_place($1, $2, $3, $4, $5, $6, $7, $8, $9) AS id"
_TOO_MANY = -1
"""In place of an id: as many questions are under way as may be."""
_RESETS_IN = f"SELECT ceil(extract(epoch FROM {_TODAY} + interval '1 day' - now()))::int AS seconds"  # noqa: S608
_JUDGED = """
UPDATE query_executions SET counts = $8, sql = $2, declared_kind = $3, sql_class = $4, verdict = $5, reason = $6
WHERE id = $1 AND outcome IS NULL AND (counts OR reserved_until > now())
RETURNING set_config('synchronous_commit', CASE WHEN $7 THEN current_setting('synchronous_commit') ELSE 'off' END, true)
"""
_FINISHED = """
UPDATE query_executions SET counts = $2, sql = $3, declared_kind = $4, sql_class = $5, verdict = $6, reason = $7,
       outcome = $8, error_code = $9, turns = $10, prompt_tokens = $11, completion_tokens = $12, row_count = $13,
       truncated = $14, model_ms = $15, duration_ms = $16, finished_at = now()
WHERE id = $1 AND outcome IS NULL
"""


class Execution(msgspec.Struct, kw_only=True):
    """One question under way, as far as it has come."""

    id: int
    started: float
    step: Literal["all", "translate", "execute"] = "all"
    """What is done with the question. Executing what was translated before doesn't count: translating did."""
    counts: bool = False
    sql: str | None = None
    declared_kind: str | None = None
    sql_class: str | None = None
    verdict: str | None = None
    reason: str | None = None
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    row_count: int | None = None
    truncated: bool = False
    model_seconds: float = 0.0
    outcome_known: bool = True
    """False once it was cancelled while statements ran that change something."""

    @property
    def seconds(self) -> float:
        """The time since the question began."""
        return time.monotonic() - self.started

    async def note_judged(self, *, durable: bool) -> bool:
        """Notes the verdict before anything is changed or shown; `durable` where the execution changes something. False
        when this came too late: the place was given away."""
        in_time = await fetch_exists(
            _JUDGED,
            self.id,
            self.sql,
            self.declared_kind,
            self.sql_class,
            self.verdict,
            self.reason,
            durable,
            self.step != "execute",
        )
        self.counts = in_time and self.step != "execute"
        return in_time

    async def finish(self, outcome: str, error_code: str | None = None) -> None:
        await execute(
            _FINISHED,
            self.id,
            self.counts,
            self.sql,
            self.declared_kind,
            self.sql_class,
            self.verdict,
            self.reason,
            outcome,
            error_code,
            self.turns,
            self.prompt_tokens,
            self.completion_tokens,
            self.row_count,
            self.truncated,
            round(1000 * self.model_seconds),
            round(1000 * self.seconds),
        )


async def begin(
    plans: Plans,
    principal: Principal,
    target: QueryTarget,
    question: str,
    model: str,
    *,
    place_seconds: float,
    most_seconds: float,
    step: Literal["all", "translate"],
) -> Execution:
    """Takes a place in the day's allowance for `place_seconds`; nothing takes longer than `most_seconds` in all.
    Raises `QueryAllowanceExceeded`, or `TooManyUnderWay` when the team has as many questions under way as it may, over
    all processes."""
    started, allowance = time.monotonic(), ALLOWANCES[target.tier]
    at_once = plans.tiers[target.tier].query_executions
    execution = await fetch_value(
        int,
        _TAKE,
        target.team_id,
        principal.user_id,
        target.id,
        question,
        model,
        most_seconds,
        place_seconds,
        allowance,
        at_once,
    )
    if execution == _TOO_MANY:
        raise TooManyUnderWay("query_executions", at_once)
    if execution is None:
        assert allowance is not None
        raise QueryAllowanceExceeded(allowance, max(1, await fetch_scalar(int, _RESETS_IN)))
    return Execution(id=execution, started=started, step=step)


async def delete_old_executions(most: int, age: timedelta) -> int:
    """Deletes records of questions older than `age`, but none of today: those count against the allowance, however
    short the others are kept. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM query_executions WHERE id IN (
            SELECT id FROM query_executions
            WHERE created_at < least(now() - $2::interval, date_trunc('day', now(), 'UTC')) AND reserved_until <= now()
            ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        age,
    )
