"""How an application ends, in words that say what stays in the database and what does not."""

from app.blueprints.applications.journal import Journal, JournalEntry, entries_of
from app.blueprints.applications.log import SETVAL_STAYS, Log
from app.blueprints.applications.records import ApplicationRecord
from app.blueprints.applications.rehearsal import Rehearsal
from app.blueprints.applications.schemas import StatementStatus
from app.blueprints.applications.script import ExecutionFault
from app.contracts.applications import ApplicationStatus
from app.engines.base import EngineAdapter
from app.engines.scripts import ScriptEnd
from app.operations.reasons import ReasonCode

MOST_LOSSES = 3
"""A script is given up once its session was lost so many times: the script may end its session itself."""

ROLLED_BACK = "rolled back"
STAYS = "stays: this engine commits each statement by itself"
ON_COPY = "ran on a throw-away copy of the schema, without its data; this engine can't roll back"
REHEARSED = "passed on a throw-away copy of the schema; not run in the database"
COPY_REFUSED = "refused by a throw-away copy of the schema; the database was not touched"
NOT_OURS = "the transaction that it ran in was ended by the script: whether it was committed is unknown"
NOT_BACK = "its host was lost, and whether the backup that the database is made from has it is unknown"
IN_DOUBT = "it was begun, and whether it took effect is unknown"

_NOTHING = "Nothing was changed."
_BUT_SEQUENCES = "What setval has set is not undone."

_RUN = (StatementStatus.RUNNING, StatementStatus.SUCCEEDED, StatementStatus.FAILED)


class Ending:
    """Writes the end of one application."""

    def __init__(self, record: ApplicationRecord, journal: Journal, *, transactional: bool) -> None:
        self._record = record
        self._journal = journal
        self._transactional = transactional

    async def settle_last(self, adapter: EngineAdapter) -> bool:
        """Finds out what became of an attempt that died. Returns True when the application has ended with it; otherwise
        nothing of that attempt is left, and another may begin."""
        if self._record.session_reference is None:
            return await self._gave_up(self._record.losses)
        end = await adapter.end_script(self._record.session_reference)
        entries = await entries_of(self._record.id)
        if not self._transactional:
            return await self._settle_steps(entries)
        if end is ScriptEnd.UNDONE:
            await self._journal.note_loss()
            return await self._gave_up(self._record.losses + 1)
        if end is ScriptEnd.COMMITTED and not self._record.is_dry_run:
            for entry in entries:
                if entry.status in (StatementStatus.PENDING, StatementStatus.RUNNING):
                    entry.status = StatementStatus.SUCCEEDED
                    entry.note = "committed with the others; the worker died before it had written down more of it"
            await self._journal.end(ApplicationStatus.COMPLETED, None, entries)
            return True
        doubt = "the engine doesn't report whether it was committed"
        begun = (StatementStatus.PENDING, StatementStatus.RUNNING, StatementStatus.SUCCEEDED)
        _mark(entries, doubt, *begun, status=StatementStatus.UNKNOWN)
        message = "The worker died, and the engine no longer reports whether the transaction was committed."
        await self._journal.end(ApplicationStatus.FAILED, message, entries)
        return True

    async def fail(self, message: str) -> None:
        """Fails the application before anything was started, or after all of it was undone."""
        entries = await entries_of(self._record.id)
        # The journal is written now and then, so a statement that is pending there may have been run.
        was_started = self._record.losses > 0 or self._record.session_reference is not None
        if was_started and _sets_sequence(entries, StatementStatus.PENDING, *_RUN):
            message = f"{message} {_BUT_SEQUENCES}"
        _note_rolled_back(entries)
        _skip_rest(entries)
        await self._journal.end(ApplicationStatus.FAILED, message, entries)

    async def of_destroyed(self) -> None:
        """Ends an application whose database was destroyed, and whose host nobody can ask any more."""
        entries = await entries_of(self._record.id)
        _skip_rest(entries)
        message = "The database was destroyed before the script had ended. Nothing of it is left."
        await self._journal.end(ApplicationStatus.FAILED, message, entries)

    async def of_lost_host(self) -> None:
        """Ends an application whose database is made again on another host, from a backup. What that host would say of
        the session is about somebody else's, and what the journal says is about data that is not there."""
        entries, message = await entries_of(self._record.id), ReasonCode.HOST_LOST.message
        if self._record.session_reference is None:
            _mark(entries, ROLLED_BACK, StatementStatus.SUCCEEDED)
            message = f"{message} {_NOTHING}"
        else:
            begun = [StatementStatus.RUNNING, StatementStatus.SUCCEEDED]
            if self._transactional:  # its journal is written now and then
                begun.append(StatementStatus.PENDING)
            _mark(entries, NOT_BACK, *begun, status=StatementStatus.UNKNOWN)
            message = f"{message} Whether the backup has what the script did is unknown: look at the database."
        _skip_rest(entries)
        await self._journal.end_with_host(message, entries)

    async def of_transaction(self, log: Log, fault: ExecutionFault | None) -> None:
        if fault is not None:
            but = " but sequences that setval has set" if _sets_sequence(log.entries, *_RUN) else ""
            _note_rolled_back(log.entries)
            _skip_rest(log.entries)
            message = f"{fault.message_with_line(log)}. The transaction was rolled back: nothing was changed{but}."
            await self._journal.end(ApplicationStatus.FAILED, message, log.entries)
        elif self._record.is_dry_run:
            log.annotate(f"{ROLLED_BACK}: this was a dry run", StatementStatus.SUCCEEDED)
            await self._journal.end(ApplicationStatus.ROLLED_BACK, None, log.entries)
        else:
            await self._journal.end(ApplicationStatus.COMPLETED, None, log.unwritten())

    async def of_lost_transaction(self, log: Log, reason: str) -> None:
        """Ends an application whose transaction is not the one that was begun, so that neither its commit nor its end
        shows what took effect."""
        log.annotate(NOT_OURS, StatementStatus.SUCCEEDED, StatementStatus.RUNNING, status=StatementStatus.UNKNOWN)
        _skip_rest(log.entries)
        message = f"{log.shown_text(reason)}. What of the script was committed is unknown: look at the database."
        await self._journal.end(ApplicationStatus.FAILED, message, log.entries)

    async def of_dry_run(self, log: Log, rehearsal: Rehearsal) -> None:
        """Ends a dry run on a copy. What the copy lacked is said once."""
        lacked = f" It lacked {', '.join(rehearsal.left_out)}." if rehearsal.left_out else ""
        log.annotate(ON_COPY, StatementStatus.SUCCEEDED)
        if rehearsal.fault is None:
            if lacked:
                log.add_to_first(f".{lacked}", StatementStatus.SUCCEEDED, StatementStatus.UNKNOWN)
            await self._journal.end(ApplicationStatus.ROLLED_BACK, None, log.entries)
            return
        log.annotate(COPY_REFUSED, StatementStatus.FAILED)
        _skip_rest(log.entries)
        message = f"{rehearsal.fault.message_with_line(log)}. It was tried on a throw-away copy.{lacked} {_NOTHING}"
        await self._journal.end(ApplicationStatus.FAILED, message, log.entries)

    async def of_rehearsal(self, log: Log, fault: ExecutionFault) -> None:
        """Ends an application whose rehearsal has stopped the script."""
        log.annotate(REHEARSED, StatementStatus.SUCCEEDED, StatementStatus.UNKNOWN, status=StatementStatus.SKIPPED)
        log.annotate(COPY_REFUSED, StatementStatus.FAILED)
        _skip_rest(log.entries)
        message = f"{fault.message_with_line(log)}. It was tried on a throw-away copy of the schema first. {_NOTHING}"
        await self._journal.end(ApplicationStatus.FAILED, message, log.entries)

    async def of_steps(self, log: Log, fault: ExecutionFault | None) -> None:
        """Ends an application whose statements were committed one by one."""
        if fault is None:
            await self._journal.end(ApplicationStatus.COMPLETED, None, log.entries)
            return
        log.annotate(STAYS, StatementStatus.SUCCEEDED)
        _skip_rest(log.entries)
        message = f"{fault.message_with_line(log)}. {_stays(log.entries)}"
        await self._journal.end(ApplicationStatus.FAILED, message, log.entries)

    async def of_doubt(self, entries: list[JournalEntry], reason: str) -> None:
        """The same, where the script was stopped in the middle of a statement."""
        _mark(entries, IN_DOUBT, StatementStatus.RUNNING, status=StatementStatus.UNKNOWN)
        _mark(entries, STAYS, StatementStatus.SUCCEEDED)
        _skip_rest(entries)
        doubtful = [entry for entry in entries if entry.status is StatementStatus.UNKNOWN]
        where = "".join(f" Statement {entry.index} (line {entry.line}) may or may not have run." for entry in doubtful)
        await self._journal.end(ApplicationStatus.FAILED, f"{reason}.{where} {_stays(entries)}", entries)

    async def _settle_steps(self, entries: list[JournalEntry]) -> bool:
        begun = [entry for entry in entries if entry.status is not StatementStatus.SKIPPED]
        if all(entry.status is StatementStatus.PENDING for entry in begun):
            await self._journal.note_session(None)
            return False
        if all(entry.status is StatementStatus.SUCCEEDED for entry in begun):
            await self._journal.end(ApplicationStatus.COMPLETED, None, entries)
        elif any(entry.status is StatementStatus.FAILED for entry in entries):
            _mark(entries, STAYS, StatementStatus.SUCCEEDED)
            _skip_rest(entries)
            await self._journal.end(ApplicationStatus.FAILED, f"A statement failed. {_stays(entries)}", entries)
        else:
            await self.of_doubt(entries, "The session was lost in the middle, and is not begun anew")
        return True

    async def _gave_up(self, losses: int) -> bool:
        if losses < MOST_LOSSES:
            return False
        await self.fail(f"Its session was lost {losses} times, the last time in the middle of the script. {_NOTHING}")
        return True


def _mark(
    entries: list[JournalEntry], note: str, *statuses: StatementStatus, status: StatementStatus | None = None
) -> None:
    for entry in entries:
        if entry.status in statuses:
            entry.note = note
            entry.status = status or entry.status


def _sets_sequence(entries: list[JournalEntry], *statuses: StatementStatus) -> bool:
    """Whether a statement of these statuses sets what a rollback doesn't undo."""
    return any(entry.note == SETVAL_STAYS and entry.status in statuses for entry in entries)


def _note_rolled_back(entries: list[JournalEntry]) -> None:
    for entry in entries:
        if entry.status is StatementStatus.SUCCEEDED:
            entry.note = f"{ROLLED_BACK}, but {SETVAL_STAYS}" if entry.note == SETVAL_STAYS else ROLLED_BACK


def _skip_rest(entries: list[JournalEntry]) -> None:
    for entry in entries:
        if entry.status in (StatementStatus.PENDING, StatementStatus.RUNNING):
            entry.status = StatementStatus.SKIPPED


def _stays(entries: list[JournalEntry]) -> str:
    kept = [entry.index for entry in entries if entry.status is StatementStatus.SUCCEEDED]
    if not kept:
        return _NOTHING if not any(entry.status is StatementStatus.UNKNOWN for entry in entries) else ""
    # Statements run in order, so those that succeeded are the first ones.
    numbers = f"Statement {kept[0]} stays" if len(kept) == 1 else f"Statements {kept[0]} to {kept[-1]} stay"
    return f"{numbers}: this engine commits each by itself."
