"""The execution log of one attempt, as it grows."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from app.blueprints.applications.journal import Journal, JournalEntry
from app.blueprints.applications.schemas import StatementStatus
from app.blueprints.preparation import PreparedStatement
from app.core.background import repeating
from app.engines.errors import MAX_MESSAGE, StatementFailed, shortened

_SHOWN_EVERY_SECONDS = 0.25
_COUNTS_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "SELECT", "VALUES", "WITH", "CALL"})

_SEARCHED = 2 * MAX_MESSAGE
"""How many characters of a message are searched for what is to be hidden: a server's message may have fifteen million,
and nothing else runs while they are searched."""
_BORDER = 100
"""Characters left out at the end of what was searched: a value or name that is cut in two there may be too short to be
known."""

SETVAL_STAYS = "setval is not undone by a rollback"
"""The note that a statement which sets a sequence has from the beginning: the next attempt after a crash sees it
there."""

Hide = Callable[[str], str]
"""Takes secret values, and names that are nobody's business, out of a message."""


class Log:
    """The log of one attempt. `hide` is applied to every message of the engine, which may quote what must not be
    shown."""

    def __init__(self, journal: Journal, statements: Sequence[PreparedStatement], hide: Hide) -> None:
        self._journal = journal
        self.hide = hide
        self._changed: set[int] = set()
        self.entries = [_entry(statement) for statement in statements]

    def begin(self, position: int) -> None:
        self._note(position, status=StatementStatus.RUNNING)

    def succeed(self, position: int, rows: int | None, duration_ms: int) -> None:
        counted = self.entries[position].kind.split(" ")[0].upper() in _COUNTS_ROWS
        self._note(position, status=StatementStatus.SUCCEEDED, rows=rows if counted else None, duration_ms=duration_ms)

    def fail(self, position: int, error: StatementFailed, duration_ms: int, *, at_line: int | None) -> str:
        """Notes that the statement failed. Returns the message as it may be shown."""
        message = self.message_of(error) + (f" (line {at_line})" if at_line is not None else "")
        self._note(
            position,
            status=StatementStatus.FAILED,
            duration_ms=duration_ms,
            error_code=error.code,
            error_message=message,
        )
        return message

    def message_of(self, error: StatementFailed) -> str:
        """The engine's message, as it may be shown and as our own database can store it."""
        return self.shown_text(str(error))

    def shown_text(self, text: str) -> str:
        """As `message_of`, for any text that may quote what the engine said."""
        # Hidden first: of a secret that is cut in two, neither half would be known.
        shown = self.hide(text[:_SEARCHED]).replace("\0", "\ufffd")
        return shortened(shown if len(text) <= _SEARCHED else f"{shown[:-_BORDER]}…")

    def doubt(self, position: int) -> None:
        """Notes that the statement failed where there is no data, and may succeed where there is."""
        self._note(
            position,
            status=StatementStatus.UNKNOWN,
            note="it needs data, and the copy on which it was tried has none",
        )

    def annotate(self, note: str, *statuses: StatementStatus, status: StatementStatus | None = None) -> None:
        """Adds a note to all entries of these `statuses`, and gives them another `status` if one is given."""
        for position, entry in enumerate(self.entries):
            if entry.status in statuses:
                self._note(position, note=note, status=status or entry.status)

    def add_to_first(self, more: str, *statuses: StatementStatus) -> None:
        """Adds to the note of the first entry of these statuses: what is said of all of them needs no row each."""
        for position, entry in enumerate(self.entries):
            if entry.status in statuses:
                self._note(position, note=f"{entry.note or ''}{more}")
                return

    async def flush(self) -> None:
        """Writes what has changed since the last time."""
        changed, entries = self._changed, self.unwritten()
        self._changed = set()
        try:
            if entries:
                await self._journal.write(entries)
        except BaseException:
            self._changed |= changed
            raise

    def unwritten(self) -> list[JournalEntry]:
        """The entries that have changed since the last `flush`."""
        return [self.entries[position] for position in sorted(self._changed)]

    def shown(self) -> AbstractAsyncContextManager[None]:
        """Writes the progress again and again during the block, so that it can be read. Nothing depends on it: the end
        writes what is left."""
        return repeating(self.flush, _SHOWN_EVERY_SECONDS, failure="progress_not_shown")

    def _note(self, position: int, **changes: object) -> None:
        entry = self.entries[position]
        for name, value in changes.items():
            setattr(entry, name, value)
        self._changed.add(position)


def _entry(statement: PreparedStatement) -> JournalEntry:
    entry = JournalEntry(index=statement.index, line=statement.line, kind=statement.kind, sql=statement.log_text)
    if statement.left_out is not None:
        entry.status, entry.note = StatementStatus.SKIPPED, statement.left_out
    elif statement.sets_sequence:
        entry.note = SETVAL_STAYS
    return entry
