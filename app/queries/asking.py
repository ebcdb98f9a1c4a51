"""One question on its way: translated, judged, executed, mended once. The model's words decide nothing."""

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack

import msgspec

from app.auth import standing
from app.auth.principal import Principal
from app.core.errors import (
    AppError,
    DatabaseUnreachable,
    LanguageModelUnavailable,
    QueryExecutionFailed,
    QueryNotTranslated,
    UnsafeSQL,
)
from app.dialects.registry import DIALECTS
from app.dialects.verdict import AllowedSQL, Refused, SqlClass, Unreadable, recordable
from app.engines.querying import QueryFailed, QueryLimits, ReadSession, RowsRead, SchemaDescription, WriteSession
from app.queries import counting
from app.queries.descriptions import Descriptions
from app.queries.policy import check_kind, check_policy
from app.queries.records import Execution
from app.queries.schemas import Column, Result
from app.queries.sessions import Sessions
from app.queries.targets import QueryTarget
from app.queries.translate import problems
from app.queries.translate.model import LanguageModel
from app.queries.translate.prompt import Conversation


class QueryDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What a process's questions share."""

    model: LanguageModel
    sessions: Sessions
    descriptions: Descriptions
    limits: QueryLimits


class Asking:
    """One question, from the first connection to the result. `resources` are closed with the question."""

    def __init__(
        self,
        dependencies: QueryDependencies,
        asker: Principal,
        target: QueryTarget,
        question: str,
        resources: AsyncExitStack,
    ) -> None:
        self._dependencies = dependencies
        self._asker = asker
        self._target = target
        self._dialect = DIALECTS[target.engine]
        self._question = question
        self._resources = resources
        self._regranted = False
        self._execution: Execution
        self._finding: AllowedSQL | Refused
        self._session: ReadSession | None = None
        # It begins to connect while the question is being recorded.
        self._connecting = asyncio.create_task(self._open())
        resources.push_async_callback(self._end_connecting)

    async def answer(self, execution: Execution) -> Result:
        self._execution = execution
        conversation = await self._translated()
        try:
            session, self._session = self._session, None
            return await self._execute(await self._judged(), session)
        except (Unreadable, QueryFailed) as failure:
            await self._resources.aclose()
            return await self._mended(conversation, failure)

    async def execute(self, execution: Execution) -> Result:
        """Executes SQL that was translated before: it is judged anew, for what may be run can have changed since, and
        not mended."""
        assert execution.sql is not None, "it was translated"
        self._execution = execution
        self._finding = await asyncio.to_thread(self._judge, execution.sql)
        await self._connecting
        try:
            session, self._session = self._session, None
            return await self._execute(await self._judged(), session)
        except (Unreadable, QueryFailed) as failure:
            raise self._final(failure) from None

    async def _open(self) -> SchemaDescription:
        dependencies = self._dependencies
        self._session = session = await self._resources.enter_async_context(dependencies.sessions.reading(self._target))
        try:
            description = await session.describe(dependencies.descriptions.get(self._target.uuid))
        except QueryFailed as failure:
            raise DatabaseUnreachable(f"The database's schema can't be read: {failure}") from None
        dependencies.descriptions.keep(self._target.uuid, description)
        return description

    async def _end_connecting(self) -> None:
        self._connecting.cancel()
        await asyncio.gather(self._connecting, return_exceptions=True)

    async def _translated(self) -> Conversation:
        """Translates the question with what was last known of the schema, while the session that asks for its changes
        still connects. If there are changes, it translates all over again."""
        known = self._dependencies.descriptions.get(self._target.uuid)
        if known is None:
            conversation = await self._conversation(await self._connecting)
            await self._holding(self._translate(conversation))
            return conversation
        conversation = await self._conversation(known)
        translating = asyncio.create_task(self._translate(conversation))
        try:
            await asyncio.wait((translating, self._connecting), return_when=asyncio.FIRST_COMPLETED)
            if not self._connecting.done():
                translating.result()
            description = await self._connecting
            if description is known:
                await self._holding(translating)
                return conversation
        finally:
            translating.cancel()
            await asyncio.gather(translating, return_exceptions=True)
        conversation = await self._conversation(description)
        await self._holding(self._translate(conversation))
        return conversation

    async def _conversation(self, description: SchemaDescription) -> Conversation:
        # A large schema takes half a second.
        return await asyncio.to_thread(Conversation, self._dialect, description.tables, self._question)

    async def _holding(self, translating: Awaitable[None]) -> None:
        """Waits for the model with the session open; without it where another question holds one already: one idle
        session a database is enough, for the model may take its time."""
        idle = self._dependencies.sessions.idle
        if not idle.has_room(self._target.uuid):
            self._session = None
            await self._resources.aclose()
            await translating
            return
        with idle.slot_now(self._target.uuid):
            await translating

    async def _mended(self, conversation: Conversation, failure: Unreadable | QueryFailed) -> Result:
        """Takes one more turn, when the failure was about names or syntax and nothing has taken effect."""
        sql = self._execution.sql or ""
        if isinstance(failure, Unreadable):
            problem: str | None = problems.UNREADABLE
        elif failure.executed or not failure.certain:
            problem = None
        else:
            problem = problems.problem(self._dialect.error_phrases, failure.code, str(failure), sql)
        if problem is None or not await self._translated_again(conversation, problem):
            raise self._final(failure)
        try:
            return await self._execute(await self._judged(), None)
        except (Unreadable, QueryFailed) as again:
            raise self._final(again) from None

    async def _translated_again(self, conversation: Conversation, problem: str) -> bool:
        """Asks the model to mend its SQL. Returns False when it gave none: then the first failure is the answer."""
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
            answered = await self._dependencies.model.ask(conversation.messages)
        finally:
            execution.model_seconds += time.monotonic() - started
        execution.prompt_tokens += answered.prompt_tokens
        execution.completion_tokens += answered.completion_tokens
        if answered.reply.sql is None:
            raise QueryNotTranslated(recordable(answered.reply.refusal), query_id=execution.id)
        execution.sql, execution.declared_kind = recordable(answered.reply.sql), answered.reply.kind
        # As soon as it is there: while the session still connects that costs nobody time.
        self._finding = await asyncio.to_thread(self._judge, answered.reply.sql)

    def _judge(self, sql: str) -> AllowedSQL | Refused:
        try:
            return self._dialect.judge(sql, self._target.engine_name)
        except Refused as refused:
            return refused

    async def _judged(self) -> AllowedSQL:
        """Raises `UnsafeSQL`; `Unreadable` too, which may be mended."""
        execution, verdict = self._execution, self._finding
        try:
            if isinstance(verdict, Refused):
                raise verdict
            execution.sql_class = verdict.sql_class
            check_kind(verdict, execution.declared_kind)
            check_policy(verdict, self._target.queries)
        except Refused as refused:
            execution.verdict, execution.reason = "refused", refused.reason
            counting.refused(self._target.engine, refused)
            await self._note(durable=False)
            if isinstance(refused, Unreadable):
                raise
            raise self._final(refused) from None
        execution.verdict, execution.reason = "allowed", None
        return verdict

    async def _note(self, *, durable: bool) -> None:
        """Notes the verdict before anything is changed or shown. The model may have taken its time, and the asker may
        have lost the key, the session or the team since: raises what `standing.expect` does."""
        await standing.expect(self._asker, self._target.team_id)
        if not await self._execution.note_judged(durable=durable):
            raise LanguageModelUnavailable("The language model's answer came too late: ask again.")

    async def _execute(self, verdict: AllowedSQL, session: ReadSession | None) -> Result:
        if self._execution.step == "translate":
            await self._note(durable=False)
            return Result(type=verdict.sql_class)
        if verdict.sql_class is SqlClass.SELECT:
            return self._rows(await self._read_and_note(verdict.statements[0], session))
        await self._note(durable=True)
        async with self._dependencies.sessions.writing(self._target) as writing:
            try:
                return await self._change(verdict, writing)
            except asyncio.CancelledError:
                # The server may have been done before it heard of it, with some of the statements or with all.
                self._execution.outcome_known = False
                raise

    async def _change(self, verdict: AllowedSQL, writing: WriteSession) -> Result:
        if verdict.sql_class is SqlClass.WRITE:
            affected = await writing.write(verdict.statements[0])
            self._execution.row_count = affected
            return Result(type=verdict.sql_class, affectedRows=affected)
        executed = await writing.change(verdict.statements)
        return Result(type=verdict.sql_class, statementsExecuted=executed)

    async def _read_and_note(self, sql: str, session: ReadSession | None) -> RowsRead:
        """Reads and notes side by side: a read that nobody has noted yet does no harm."""
        noting = asyncio.create_task(self._note(durable=False))
        try:
            return await self._read(sql, session)
        finally:
            await noting

    async def _read(self, sql: str, session: ReadSession | None) -> RowsRead:
        sessions = self._dependencies.sessions
        try:
            if session is not None:
                return await session.read(sql)
            async with sessions.reading(self._target) as fresh:
                return await fresh.read(sql)
        except QueryFailed as failure:
            if failure.code not in self._dialect.not_granted_codes or self._regranted:
                raise
        # The account lacks a right: on what the tenant made when its default privileges were gone, or on nothing of
        # the tenant's at all. Granting again shows which. The place goes first: whoever keeps one and waits for
        # another may wait for somebody who does the same.
        self._regranted = True
        await self._resources.aclose()
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
            maxRows=self._dependencies.limits.rows,
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
