"""From our own errors to Temporal's failures, under the contract's names and without secrets."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN, NOT_WANTED, STORE_UNAVAILABLE
from app.databases.lifecycle import NotWanted
from app.engines.base import EngineError, HostUnavailable, NameTaken
from app.store.locks import LockBusy, LockLost


@contextmanager
def as_failures() -> Iterator[None]:
    """Translates what the block raises. The cause is left out: a driver's own error may quote a statement."""
    try:
        yield
    except NotWanted as error:
        # Expected, and so no reason for a warning in the log.
        raise ApplicationError(
            str(error), type=NOT_WANTED, non_retryable=True, category=ApplicationErrorCategory.BENIGN
        ) from None
    except NameTaken as error:
        raise ApplicationError(str(error), type=NAME_TAKEN, non_retryable=True) from None
    except HostUnavailable as error:
        raise ApplicationError(str(error), type=HOST_UNAVAILABLE) from None
    except (LockBusy, LockLost) as error:
        raise ApplicationError(str(error), type=STORE_UNAVAILABLE) from None
    except EngineError as error:
        raise ApplicationError(str(error), type=ENGINE_REFUSED) from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # TimeoutError is an OSError: the engines' own are translated before they come here.
        fault = type(error).__name__
        raise ApplicationError(f"Headwater's own database is out of reach ({fault})", type=STORE_UNAVAILABLE) from None
