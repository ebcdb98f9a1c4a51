"""Questions to databases: where they begin, and how each is recorded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic

from app.audit.events import audited
from app.auth import standing
from app.auth.principal import Principal
from app.contracts.base import Engine
from app.core.errors import (
    AppError,
    LanguageModelUnavailable,
    QueryExecutionFailed,
    QueryNotTranslated,
    UnsafeSQL,
)
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.querying import QueryLimits
from app.hosts.adapters import Adapters
from app.queries import counting, previews, records, targets
from app.queries.asking import Asking, QueryDependencies
from app.queries.descriptions import Descriptions
from app.queries.records import Execution
from app.queries.schemas import AskQuestion, QueryAnswer
from app.queries.sessions import Sessions
from app.queries.translate.model import LanguageModel
from app.quotas.plans import Plans

_OUTCOMES: dict[type[AppError], str] = {
    UnsafeSQL: "refused",
    QueryNotTranslated: "not_translated",
    LanguageModelUnavailable: "model_unavailable",
    QueryExecutionFailed: "failed",
}
_MARGIN_SECONDS = 70.0
"""How much longer than the model a question may take: it waits for a read session, for its turn, for the database's
lock and for a connection."""


class Questions:
    """What one API process answers questions with."""

    def __init__(self, settings: Settings, plans: Plans, box: SecretBox, adapters: Adapters) -> None:
        limits = QueryLimits(seconds=settings.query_timeout_seconds, rows=settings.nl_max_rows)
        self._plans = plans
        self.model = LanguageModel(settings)
        self._dependencies = QueryDependencies(
            model=self.model,
            sessions=Sessions(plans, box, adapters, limits),
            descriptions=Descriptions(),
            limits=limits,
        )
        self._place_seconds = settings.nl_timeout_seconds + _MARGIN_SECONDS
        # Two turns, each with its statement.
        self._most_seconds = 2 * (self._place_seconds + settings.query_timeout_seconds + _MARGIN_SECONDS)

    async def ask(self, principal: Principal, asked: AskQuestion) -> QueryAnswer:
        """Raises `NotFound`, `DatabaseNotActive`, `DatabaseUnreachable`, `QueryAllowanceExceeded`,
        `TooManyUnderWay`, the errors of `_OUTCOMES`, and those of `standing.expect`. Cancelled, it cancels what runs on
        the engine."""
        target, began = await targets.find(principal, asked.database_uuid), monotonic()
        self.model.require()
        async with AsyncExitStack() as resources:
            asking = Asking(self._dependencies, principal, target, asked.query, resources)
            # Before anything is done, whatever becomes of it: the record of the question says that.
            async with audited():
                execution = await records.begin(
                    self._plans,
                    principal,
                    target,
                    asked.query,
                    self.model.name,
                    place_seconds=self._place_seconds,
                    most_seconds=self._most_seconds,
                    step="all" if asked.execute else "translate",
                )
            async with _recorded(execution, target.engine, resources):
                result = await asking.answer(execution)
        await standing.expect_after(began, principal, target.team_id)
        assert execution.sql is not None
        return QueryAnswer(sql=execution.sql, result=result, query_id=execution.id)

    async def execute(self, principal: Principal, query: int) -> QueryAnswer:
        """Executes what a question was translated to, once. Raises `NotFound`, `QueryAlreadyExecuted`, and what `ask`
        raises, except the errors of the model."""
        preview = await previews.find(principal, query)
        target, began = await targets.find(principal, preview.database), monotonic()
        at_once = self._plans.tiers[target.tier].query_executions
        async with AsyncExitStack() as resources:
            asking = Asking(self._dependencies, principal, target, preview.question, resources)
            async with audited():
                execution = await previews.begin(preview, principal, target, self._place_seconds, at_once=at_once)
            async with _recorded(execution, target.engine, resources):
                result = await asking.execute(execution)
        await standing.expect_after(began, principal, target.team_id)
        return QueryAnswer(sql=preview.sql, result=result, query_id=execution.id)


@asynccontextmanager
async def _recorded(execution: Execution, engine: Engine, resources: AsyncExitStack) -> AsyncIterator[None]:
    """Notes how the block ends in the question's record and in the metrics. `resources` are closed meanwhile."""
    outcome, code = previews.TRANSLATED if execution.step == "translate" else "succeeded", None
    try:
        yield
    except BaseException as error:
        outcome, code = _outcome(execution, error)
        raise
    finally:
        counting.ended(engine, execution, outcome)
        finishing = asyncio.create_task(execution.finish(outcome, code))
        try:
            await resources.aclose()
        finally:
            await asyncio.shield(finishing)


def _outcome(execution: Execution, error: BaseException) -> tuple[str, str | None]:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled" if execution.outcome_known else "unknown", None
    if isinstance(error, QueryExecutionFailed):
        details = error.details or {}
        return "failed" if details["outcome_known"] else "unknown", details["engine_code"]
    if isinstance(error, AppError):
        return _OUTCOMES.get(type(error), "failed"), error.code
    return "failed", "internal_error"
