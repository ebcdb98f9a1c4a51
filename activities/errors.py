"""From our own errors to Temporal's failures, under the contract's names and without secrets."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.exceptions import ApplicationError

from app.contracts.engine import HOST_UNAVAILABLE, NAME_TAKEN, NOT_WANTED
from app.databases.lifecycle import NotWanted
from app.engines.base import EngineError, HostUnavailable, NameTaken


@contextmanager
def as_failures() -> Iterator[None]:
    """Translates what the block raises. The cause is left out: a driver's own error may quote a statement."""
    try:
        yield
    except NotWanted as error:
        raise ApplicationError(str(error), type=NOT_WANTED, non_retryable=True) from None
    except NameTaken as error:
        raise ApplicationError(str(error), type=NAME_TAKEN, non_retryable=True) from None
    except HostUnavailable as error:
        raise ApplicationError(str(error), type=HOST_UNAVAILABLE) from None
    except EngineError as error:
        raise ApplicationError(str(error), type=type(error).__name__) from None
