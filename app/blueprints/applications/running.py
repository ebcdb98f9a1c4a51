"""One attempt at an application: it finds out what became of the last attempt, and then runs the script, in the
engine's way."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from app.blueprints import records as blueprints
from app.blueprints.applications import records
from app.blueprints.applications.ends import Ending
from app.blueprints.applications.journal import Journal, claim
from app.blueprints.applications.log import SETVAL_STAYS, Hide, Log
from app.blueprints.applications.operation import is_cancelled
from app.blueprints.applications.records import ApplicationRecord, values_place
from app.blueprints.applications.rehearsal import rehearse, remove_scratch
from app.blueprints.applications.script import STATEMENT_SECONDS, ExecutionFault, run_all
from app.blueprints.checking import prepared
from app.blueprints.preparation import PreparedStatement, secrets_of
from app.contracts.base import DatabaseStatus
from app.core.errors import AppError
from app.core.secrets import SecretBox
from app.engines.base import EngineAdapter, EngineError, LoginRefused, Tenant
from app.engines.errors import StatementFailed, StatementUncertain
from app.engines.registry import ADAPTERS
from app.engines.scripts import ScriptEnd, ScriptSession

_NOT_IN_A_DRY_RUN = f"a dry run leaves it out: {SETVAL_STAYS}"


async def carry_out(
    box: SecretBox,
    adapter: EngineAdapter,
    tenant: Tenant,
    record: ApplicationRecord,
    *,
    may_run: bool,
    restorable: bool = True,
) -> None:
    """Leaves the application ended, unless it raises: `EngineError` when the host is in the way, `LockLost` when
    another attempt is, and, where the credentials may be `restorable`, `LoginRefused` before anything has started.
    Call it under the applications' lock of the database."""
    journal = Journal(record, await claim(record))
    record = await remove_scratch(adapter, journal, record)
    ending = Ending(record, journal, transactional=adapter.transactional_scripts)
    if await ending.settle_last(adapter):
        return
    # The row is asked too: the workflow of an attempt may have been begun anew, and know nothing of the cancellation.
    if not may_run or await is_cancelled(record):
        await ending.fail("It was cancelled before it had changed anything.")
    elif record.database_status is not DatabaseStatus.ACTIVE:
        await ending.fail(f"The database is {record.database_status.value}. Nothing was changed.")
    else:
        try:
            statements, hide = await _statements(box, record)
        except AppError as error:
            await ending.fail(f"{error.message} Nothing was changed.")
            return
        log = Log(journal, statements, hide)
        try:
            await _Run(adapter, tenant, record, journal, ending, statements, log).run()
        except LoginRefused:
            if restorable:
                raise
            await ending.fail("The database doesn't let its own credentials in. Nothing was changed.")


async def give_up(record: ApplicationRecord) -> None:
    """Ends an application whose database was destroyed, and its host removed. Raises `LockLost`. Call it as
    `carry_out`."""
    journal = Journal(record, await claim(record))
    await Ending(record, journal, transactional=False).of_destroyed()


async def end_of_lost_host(database_id: int) -> None:
    """Ends the open applications of a database that moves to another host, before an attempt could ask the other host
    what became of the last one. An attempt at work on the lost host writes nothing more. The database's row must be
    locked."""
    for open_ in await records.open_of(database_id):
        attempt = await claim(open_)
        # Read again: until the claim an attempt could write.
        record = await records.find(open_.id)
        assert record is not None, "it was claimed a moment ago"
        transactional = ADAPTERS[record.engine].transactional_scripts
        await Ending(record, Journal(record, attempt), transactional=transactional).of_lost_host()


async def _statements(box: SecretBox, record: ApplicationRecord) -> tuple[list[PreparedStatement], Hide]:
    """The statements, and a function that hides the secret values in a message."""
    sql = await blueprints.sql_of(record.blueprint_id, record.blueprint_version)
    assert record.values_sealed is not None, "values are forgotten at the end only"
    values = msgspec.json.decode(box.open(record.values_sealed, values_place(record.id)), type=dict[str, Any])
    statements = await prepared(sql, record.engine, record.definitions, values, field="variables")
    # In a thread of its own, and once: there may be a megabyte of values, and thousands of messages.
    secrets = await asyncio.to_thread(secrets_of, record.definitions, values)
    return [_in_dry_run(one) for one in statements] if record.is_dry_run else statements, secrets.hide


def _in_dry_run(statement: PreparedStatement) -> PreparedStatement:
    if not statement.sets_sequence:
        return statement
    return msgspec.structs.replace(statement, text="", left_out=_NOT_IN_A_DRY_RUN)


class _Run(msgspec.Struct, frozen=True):
    adapter: EngineAdapter
    tenant: Tenant
    record: ApplicationRecord
    journal: Journal
    ending: Ending
    statements: Sequence[PreparedStatement]
    log: Log

    async def run(self) -> None:
        # The log is opened while the session is: neither waits for the other.
        opening = asyncio.create_task(self.journal.open(self.log.entries))
        try:
            if self.adapter.transactional_scripts:
                await self._in_transaction(opening)
            elif await self._rehearsed(opening):
                await self._one_by_one()
        except LoginRefused:
            await opening
            raise
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    async def _in_transaction(self, opening: asyncio.Task[None]) -> None:
        doubt = ""
        fault = None
        async with self.adapter.script_session(self.tenant, STATEMENT_SECONDS) as session:
            reference = await session.begin()
            await opening
            await self.journal.note_session(reference)
            try:
                async with self.log.shown():
                    fault = await self._run_and_end(session)
            except StatementUncertain as error:
                doubt = str(error)
            if fault is not None or doubt:
                with contextlib.suppress(EngineError):
                    await session.roll_back(checked=False)
        if fault is not None or self.record.is_dry_run:
            # The rollback is not taken for granted: the server is asked, by another session.
            end = await self.adapter.end_script(reference)
            if end is not ScriptEnd.UNDONE:
                doubt = doubt or "The transaction of the script was not rolled back"
        if doubt:
            await self.ending.of_lost_transaction(self.log, doubt)
        else:
            await self.ending.of_transaction(self.log, fault)

    async def _run_and_end(self, session: ScriptSession) -> ExecutionFault | None:
        """Raises `StatementUncertain` when the transaction is no longer ours."""
        fault = await run_all(session, self.statements, self.log)
        if fault is None:
            try:
                await (session.roll_back(checked=True) if self.record.is_dry_run else session.commit())
            except StatementFailed as error:
                fault = ExecutionFault(position=None, message=self.log.message_of(error), code=error.code)
        return fault

    async def _rehearsed(self, opening: asyncio.Task[None]) -> bool:
        """Whether the script may now run in the database itself. A dry run ends with its rehearsal."""
        await opening
        log = self.log if self.record.is_dry_run else Log(self.journal, self.statements, self.log.hide)
        async with contextlib.AsyncExitStack() as stack:
            if self.record.is_dry_run:
                await stack.enter_async_context(log.shown())
            rehearsal = await rehearse(self.adapter, self.journal, self.record, self.tenant, self.statements, log)
        if self.record.is_dry_run:
            await self.ending.of_dry_run(log, rehearsal)
        elif rehearsal.fault is not None:
            await self.ending.of_rehearsal(log, rehearsal.fault)
        return not self.record.is_dry_run and rehearsal.fault is None

    async def _one_by_one(self) -> None:
        reference = ""
        try:
            async with self.adapter.script_session(self.tenant, STATEMENT_SECONDS) as session:
                reference = await session.begin()
                await self.journal.note_session(reference)
                fault = await run_all(session, self.statements, self.log, durable=True)
                if fault is None:
                    await session.commit()
        except StatementUncertain as error:
            # Its session may go on without us.
            await self.adapter.end_script(reference)
            await self.ending.of_doubt(self.log.entries, self.log.shown_text(str(error)))
            return
        await self.ending.of_steps(self.log, fault)
