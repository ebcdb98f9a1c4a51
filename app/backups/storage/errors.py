"""Errors of the backup store, whichever it is."""

from datetime import datetime

MAX_MESSAGE = 500
"""The maximum of characters taken from a store's message."""


class BackupStoreError(Exception):
    """The store could not be used, or a backup in it. The tree:

    BackupStoreError
    ├── StoreUnavailable  nobody answers, or with an error of the server's own; another attempt may succeed
    ├── StoreRefused      the store refuses our credentials or our request; an operator has to change something
    ├── BackupMissing     there is no such backup
    ├── BackupDamaged     an object isn't what was written; another attempt ends the same way
    │   └── KeyUnknown    its key is sealed with one that this process doesn't have
    ├── IdentityNeeded    only the operator's age identity opens it
    └── BackupLocked      Object Lock keeps it
    """


class StoreUnavailable(BackupStoreError):
    """The store can't be reached, hangs, is full, or answers with an error of its own."""


class StoreRefused(BackupStoreError):
    """The store refuses: wrong credentials, no right, no such bucket, a clock that is off."""


class BackupMissing(BackupStoreError):
    """The store has no such backup, or an object of it is gone before its manifest was read."""


class BackupDamaged(BackupStoreError):
    """`object` is the name of the object, `why` is what is wrong with it."""

    def __init__(self, object: str, why: str) -> None:
        super().__init__(f"{object}: {why}")
        self.object = object
        self.why = why


class KeyUnknown(BackupDamaged):
    """Perhaps HEADWATER_SECRET_KEYS of this process is not up to date: then another attempt succeeds after a
    restart."""


class IdentityNeeded(BackupStoreError):
    """The backup was encrypted to HEADWATER_BACKUP_AGE_RECIPIENT, and no identity that was given opens it."""


class BackupLocked(BackupStoreError):
    """The store keeps the backup `until` a time, and refuses to delete it before."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"The store keeps this backup until {until.isoformat()}.")
        self.until = until
