"""How much of the data has been moved, reported by the operation while it is."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from time import monotonic

from app.core.background import repeating
from app.operations import progress
from app.operations.records import OperationProgress, open_of_workflow
from app.store.session import transaction

_UNIT = "bytes"
_REPORT_SECONDS = 1.0


class Progress:
    """Counts what passes through it. `expected` is how many bytes there may be altogether."""

    def __init__(self, workflow_id: str | None, expected: int) -> None:
        self._workflow_id = workflow_id
        self._expected = expected
        self._done = 0
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """The seconds since this was made."""
        return monotonic() - self._began

    async def counted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            self._done += len(chunk)
            yield chunk

    def reported(self) -> AbstractAsyncContextManager[None]:
        """Has the operation report every second how far it is, during the block. A report that fails does not fail the
        step."""
        return repeating(self._write, _REPORT_SECONDS, failure="progress_not_reported")

    async def _write(self) -> None:
        if self._workflow_id is None:
            return
        done = OperationProgress(done=self._done, total=max(self._done, self._expected), unit=_UNIT)
        async with transaction():
            record = await open_of_workflow(self._workflow_id)
            if record is not None:
                await progress.advance(record, done)
