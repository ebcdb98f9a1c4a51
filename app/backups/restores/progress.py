"""How much of the data has been moved, reported by the operation while it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import structlog

from app.operations import progress
from app.operations.records import OperationProgress, open_of_workflow
from app.store.session import transaction

_UNIT = "bytes"
_REPORT_SECONDS = 1.0
log = structlog.get_logger(__name__)


class Progress:
    """Counts what passes through it. `expected` is how many bytes there may be altogether."""

    def __init__(self, workflow_id: str | None, expected: int) -> None:
        self._workflow_id = workflow_id
        self._expected = expected
        self._done = 0
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return monotonic() - self._began

    async def counted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            self._done += len(chunk)
            yield chunk

    @asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """The operation says every second how far it is, during the block."""
        reporting = asyncio.create_task(self._report())
        try:
            yield
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            try:
                await self._write()
            except Exception as fault:  # a report is not worth the failure of a step
                log.info("progress_not_reported", reason=type(fault).__name__)

    async def _write(self) -> None:
        if self._workflow_id is None:
            return
        done = OperationProgress(done=self._done, total=max(self._done, self._expected), unit=_UNIT)
        async with transaction():
            record = await open_of_workflow(self._workflow_id)
            if record is not None:
                await progress.advance(record, done)
