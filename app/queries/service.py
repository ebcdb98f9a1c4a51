"""From a question to its answer: translated, judged, executed, recorded. The model's words decide nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.auth.principal import Principal
from app.core.errors import (
    AppError,
    LanguageModelUnavailable,
    QueryExecutionFailed,
    QueryNotTranslated,
    UnsafeSQL,
)
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.querying import QueryFailed, QueryLimits, ReadSession, RowsRead
from app.engines.registry import ADAPTERS
from app.hosts.adapters import Adapters
from app.queries import records, targets
from app.queries.guard.judge import check_kind, check_policy, judge
from app.queries.guard.verdict import Refused, SqlClass, Unreadable, Verdict
from app.queries.records import Execution
from app.queries.schemas import AskQuestion, Column, QueryAnswer, Result
from app.queries.sessions import Sessions
from app.queries.targets import Target
from app.queries.translate import problems
from app.queries.translate.model import LanguageModel
from app.queries.translate.prompt import Conversation

_OUTCOMES: dict[type[AppError], str] = {
    UnsafeSQL: "refused",
    QueryNotTranslated: "not_translated",
    LanguageModelUnavailable: "model_unavailable",
    QueryExecutionFailed: "failed",
}
_MARGIN_SECONDS = 30.0
_NOT_GRANTED = "42501"


class Questions:
    """What one API process answers questions with."""

    def __init__(self, settings: Settings, box: SecretBox, adapters: Adapters) -> None:
        self._limits = QueryLimits(seconds=settings.query_timeout_seconds, rows=settings.nl_max_rows)
        self._place_seconds = settings.nl_timeout_seconds + _MARGIN_SECONDS
        # Two turns, each with its statement.
        self._most_seconds = 2 * (self._place_seconds + settings.query_timeout_seconds + _MARGIN_SECONDS)
        self.model = LanguageModel(settings)
        self.sessions = Sessions(box, adapters, self._limits)

    async def ask(self, principal: Principal, asked: AskQuestion) -> QueryAnswer:
        """Raises `NotFound`, `DatabaseNotActive`, `DatabaseUnreachable`, `QueryAllowanceExceeded`, and the errors of
        `_OUTCOMES`. Cancelled, it cancels what runs on the engine."""
        target = await targets.find(principal, asked.database_uuid)
        self.model.require()
        execution = await records.begin(
            principal,
            target,
            asked.query,
            self.model.name,
            place_seconds=self._place_seconds,
            most_seconds=self._most_seconds,
        )
        async with _recorded(execution):
            result = await _Asking(self, target, execution, asked.query).answer()
        assert execution.sql is not None
        return QueryAnswer(sql=execution.sql, result=result, query_id=execution.id)

    @property
    def limits(self) -> QueryLimits:
        return self._limits


class _Asking:
    """One question on its way."""

    def __init__(self, questions: Questions, target: Target, execution: Execution, question: str) -> None:
        self._questions = questions
        self._target = target
        self._execution = execution
        self._question = question
        self._regranted = False

    async def answer(self) -> Result:
        sessions, gate = self._questions.sessions, self._questions.sessions.gate(self._target)
        async with AsyncExitStack() as kept:
            session: ReadSession | None = await kept.enter_async_context(sessions.reading(self._target))
            assert session is not None
            conversation = Conversation(
                self._target.engine,
                ADAPTERS[self._target.engine].label,
                await session.describe(),
                self._question,
            )
            keeping = not gate.keeping
            if keeping:
                gate.keeping = True
            else:
                # One idle session a database is enough: the model may take its time.
                await kept.aclose()
                session = None
            try:
                await self._translate(conversation)
            finally:
                if keeping:
                    gate.keeping = False
            try:
                return await self._execute(await self._judged(), session)
            except (Unreadable, QueryFailed) as failure:
                await kept.aclose()
                return await self._mended(conversation, failure)

    async def _mended(self, conversation: Conversation, failure: Unreadable | QueryFailed) -> Result:
        """One more turn, when the failure was about names or syntax and nothing has taken effect."""
        sql = self._execution.sql or ""
        if isinstance(failure, Unreadable):
            problem: str | None = problems.UNREADABLE
        elif failure.executed or not failure.certain:
            problem = None
        else:
            problem = problems.problem(failure.code, str(failure), sql)
        if problem is None or not await self._translated_again(conversation, problem):
            raise self._final(failure)
        try:
            return await self._execute(await self._judged(), None)
        except (Unreadable, QueryFailed) as again:
            raise self._final(again) from None

    async def _translated_again(self, conversation: Conversation, problem: str) -> bool:
        """False when no other SQL came: then the first failure is the answer."""
        execution = self._execution
        first, kind = execution.sql, execution.declared_kind
        conversation.mend(first or "", problem)
        try:
            await self._translate(conversation)
        except (QueryNotTranslated, LanguageModelUnavailable):
            execution.sql, execution.declared_kind = first, kind
            return False
        # What the question was understood as stays: mending never turns a read into a write.
        execution.declared_kind = kind
        return True

    async def _translate(self, conversation: Conversation) -> None:
        execution, started = self._execution, time.monotonic()
        execution.turns += 1
        try:
            answered = await self._questions.model.ask(conversation.messages)
        finally:
            execution.model_seconds += time.monotonic() - started
        execution.prompt_tokens += answered.prompt_tokens
        execution.completion_tokens += answered.completion_tokens
        if answered.reply.sql is None:
            raise QueryNotTranslated(answered.reply.refusal, query_id=execution.id)
        execution.sql, execution.declared_kind = answered.reply.sql, answered.reply.kind

    async def _judged(self) -> Verdict:
        """Records the verdict before anything is executed. Raises `UnsafeSQL`; `Unreadable` too, which may be
        mended."""
        execution, sql = self._execution, self._execution.sql or ""
        try:
            verdict = judge(self._target.engine, sql, self._target.engine_name)
            execution.sql_class = verdict.sql_class
            check_kind(verdict, execution.declared_kind)
            check_policy(verdict, self._target.queries)
        except Refused as refused:
            execution.verdict, execution.reason = "refused", refused.reason
            await self._note()
            if isinstance(refused, Unreadable):
                raise
            raise self._final(refused) from None
        execution.verdict, execution.reason = "allowed", None
        await self._note()
        return verdict

    async def _note(self) -> None:
        if not await self._execution.note_judged():
            raise LanguageModelUnavailable("The language model's answer came too late: ask again.")

    async def _execute(self, verdict: Verdict, session: ReadSession | None) -> Result:
        if verdict.sql_class is SqlClass.SELECT:
            return self._rows(await self._read(verdict.statements[0], session))
        async with self._questions.sessions.writing(self._target) as writing:
            if verdict.sql_class is SqlClass.WRITE:
                affected = await writing.write(verdict.statements[0])
                self._execution.row_count = affected
                return Result(type=verdict.sql_class, affectedRows=affected)
            executed = await writing.change(verdict.statements)
            return Result(type=verdict.sql_class, statementsExecuted=executed)

    async def _read(self, sql: str, session: ReadSession | None) -> RowsRead:
        sessions = self._questions.sessions
        try:
            if session is not None:
                return await session.read(sql)
            async with sessions.reading(self._target) as fresh:
                return await fresh.read(sql)
        except QueryFailed as failure:
            if failure.code != _NOT_GRANTED or self._regranted:
                raise
        # The account lacks a right: on what the tenant made when its default privileges were gone, or on nothing of
        # the tenant's at all. Granting again tells.
        self._regranted = True
        await sessions.make_reader(self._target)
        return await self._read(sql, None)

    def _rows(self, read: RowsRead) -> Result:
        self._execution.row_count, self._execution.truncated = len(read.rows), read.truncated
        return Result(
            type=SqlClass.SELECT,
            columns=[Column(column.name, column.type) for column in read.columns],
            rows=read.rows,
            rowCount=len(read.rows),
            truncated=read.truncated,
            maxRows=self._questions.limits.rows,
        )

    def _final(self, failure: Refused | QueryFailed) -> AppError:
        sql, query_id = self._execution.sql or "", self._execution.id
        if isinstance(failure, Refused):
            return UnsafeSQL(failure.reason, sql=sql, query_id=query_id)
        return QueryExecutionFailed(
            str(failure),
            details={
                "sql": sql,
                "query_id": query_id,
                "engine_code": failure.code,
                "statements_executed": failure.executed,
                "outcome_known": failure.certain,
            },
        )


@asynccontextmanager
async def _recorded(execution: Execution) -> AsyncIterator[None]:
    """However the block ends, the record says so."""
    try:
        yield
    except BaseException as error:
        outcome, code = _outcome(error)
        await asyncio.shield(asyncio.create_task(execution.finish(outcome, code)))
        raise
    await asyncio.shield(asyncio.create_task(execution.finish("succeeded")))


def _outcome(error: BaseException) -> tuple[str, str | None]:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled", None
    if isinstance(error, QueryExecutionFailed):
        details = error.details or {}
        return "failed" if details["outcome_known"] else "unknown", details["engine_code"]
    if isinstance(error, AppError):
        return _OUTCOMES.get(type(error), "failed"), error.code
    return "failed", "internal_error"
