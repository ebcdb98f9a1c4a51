"""Translates our own errors to Temporal's failures, with the contract's failure types and without secrets."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from app.backups.final import FinalBackupFailed, FinalBackupPending
from app.backups.storage.errors import BackupStoreError, StoreRefused
from app.contracts.backups import (
    BACKUP_STORE_REFUSED,
    BACKUP_STORE_UNAVAILABLE,
    FINAL_BACKUP_FAILED,
    FINAL_BACKUP_PENDING,
)
from app.contracts.engine import (
    ENGINE_REFUSED,
    HOST_FULL,
    HOST_REMOVED,
    HOST_UNAVAILABLE,
    NAME_TAKEN,
    NOT_WANTED,
    STORE_UNAVAILABLE,
)
from app.contracts.restores import SLOTS_TAKEN
from app.databases.records import NotWanted
from app.databases.states import MadeElsewhere
from app.engines.base import EngineError, HostFull, HostUnavailable, NameTaken
from app.hosts.adapters import HostRemoved
from app.hosts.slots import SlotsTaken
from app.store.locks import LockBusy, LockLost

log = structlog.get_logger(__name__)


@contextmanager
def as_failures() -> Iterator[None]:
    """Translates exceptions of the block. The cause is left out, because a driver's error may quote a statement."""
    try:
        yield
    except NotWanted as error:
        raise failure(NOT_WANTED, str(error), final=True) from None
    except FinalBackupPending as error:
        failed = isinstance(error, FinalBackupFailed)
        raise failure(FINAL_BACKUP_FAILED if failed else FINAL_BACKUP_PENDING, str(error)) from None
    except NameTaken as error:
        raise failure(NAME_TAKEN, str(error), final=True) from None
    except HostFull as error:
        raise failure(HOST_FULL, str(error)) from None
    except HostRemoved as error:
        raise failure(HOST_REMOVED, str(error)) from None
    except HostUnavailable as error:
        raise failure(HOST_UNAVAILABLE, str(error)) from None
    except SlotsTaken as error:
        # The workflow waits, and takes no slot of the queue meanwhile.
        raise failure(SLOTS_TAKEN, str(error), final=True) from None
    except (LockBusy, LockLost, MadeElsewhere) as error:
        raise failure(STORE_UNAVAILABLE, str(error)) from None
    except StoreRefused as error:
        raise failure(BACKUP_STORE_REFUSED, str(error)) from None
    except BackupStoreError as error:
        raise failure(BACKUP_STORE_UNAVAILABLE, str(error)) from None
    except EngineError as error:
        raise failure(ENGINE_REFUSED, str(error)) from None
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        # TimeoutError is an OSError. Timeouts of the engines were translated before they get here.
        fault = type(error).__name__
        raise failure(STORE_UNAVAILABLE, f"Headwater's own database is out of reach ({fault})") from None


def failure(kind: str, reason: str, *, final: bool = False) -> ApplicationError:
    """Logs one line, instead of Temporal's traceback for each attempt: a host that is down for an hour is no news
    after the first."""
    log.info(
        "step_failed", kind=kind, reason=reason, step=activity.info().activity_type if activity.in_activity() else None
    )
    return ApplicationError(reason, type=kind, non_retryable=final, category=ApplicationErrorCategory.BENIGN)
