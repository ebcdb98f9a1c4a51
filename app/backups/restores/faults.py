"""Why the data of a database can't be brought, beside what engines and the backup store report."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from app.engines.errors import EngineError


class SourceUnavailable(Exception):
    """The database that is cloned can't be read now. Another attempt may succeed."""


class SourceBusy(Exception):
    """Another clone of the same database is being made."""


class SourceGone(Exception):
    """The database that is cloned was deleted."""


class BackupGone(Exception):
    """There is no record of the backup any more."""


class BackupUnmade(Exception):
    """The backup that has to be there before anything is touched could not be made."""


class DataNotBack(Exception):
    """The backup doesn't load, and neither does the backup of what there was. Nothing may end before that one does."""


class ScratchGone(Exception):
    """The scratch database was destroyed, because nobody had asked for it for a long time."""


@contextmanager
def blaming_source() -> Iterator[None]:
    """Raises `SourceUnavailable` for what the engine of the source reports in the block: it is not the target's
    fault."""
    try:
        yield
    except EngineError as error:
        raise SourceUnavailable(str(error)) from None


async def of_source(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same for a dump that is read while it is loaded elsewhere."""
    with blaming_source():
        async for chunk in chunks:
            yield chunk
