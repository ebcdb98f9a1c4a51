"""All event types, declared once. Interface specification, section 6.

The types that endpoints may subscribe to, the catalogue in docs/webhooks.md and the API's description derive from it.
"""

from enum import StrEnum


class EventType(StrEnum):
    """An event's name, and when it occurs."""

    description: str

    def __new__(cls, name: str, description: str) -> "EventType":
        member = str.__new__(cls, name)
        member._value_ = name
        member.description = description
        return member

    DATABASE_PROVISIONING_STARTED = "database.provisioning_started", "A new database is queued for provisioning."
    DATABASE_PROVISIONED = "database.provisioned", "A database is active and ready for connections."
    DATABASE_QUOTA_WARNING = "database.quota_warning", "A database's storage has reached its warning threshold."
    DATABASE_CONNECTIONS_LIMITED = (
        "database.connections_limited",
        "A database gets fewer connections than its limit for now: its host is short of them, and it has more than its"
        " share.",
    )
    DATABASE_CONNECTIONS_RESTORED = (
        "database.connections_restored",
        "A database gets all the connections of its limit again.",
    )
    DATABASE_PAUSED = "database.paused", "A database is paused: nobody can connect to it, and its data is kept."
    DATABASE_RESUMED = "database.resumed", "A paused database is active again, with the same credentials."
    DATABASE_PASSWORD_RESTORED = (
        "database.password_restored",
        "A database's login had another password than the service's, and has the service's again.",
    )
    DATABASE_CREDENTIALS_ROTATED = (
        "database.credentials_rotated",
        "A database has a new password, and on some engines a new user name; the previous ones end with the overlap.",
    )
    DATABASE_RESTORED = "database.restored", "A database holds what a backup held; its credentials are what they were."
    DATABASE_MOVED = (
        "database.moved",
        "A database of a lost host is back on another one, from its newest backup: host and port changed.",
    )
    DATABASE_DELETED = "database.deleted", "A database is deleted."
    DATABASE_UNDELETED = "database.undeleted", "A deleted database is back, with its data and its credentials."
    DATABASE_EXPIRING = (
        "database.expiring",
        "A database deletes itself at its `expires_at`, which is an hour ahead or less.",
    )
    DATABASE_DESTROYED = "database.destroyed", "The data of a deleted database is gone, and can't be brought back."
    BACKUP_COMPLETED = "backup.completed", "A backup is whole, and can be restored."
    BACKUP_FAILED = "backup.failed", "A backup could not be taken; its `error` says why."
    BACKUP_PROVEN = "backup.proven", "A restore test brought back all that a backup holds, equal to its database then."
    BACKUP_MISMATCH = "backup.mismatch", "A restore test brought back something else than a backup's database held."
    BACKUP_TEST_FAILED = "backup.test_failed", "A restore test of a backup could not be run to its end."
    OPERATION_OVERDUE = "operation.overdue", "An operation is still open after its deadline. It goes on."
    PING = "ping", "The test-delivery operation is used."
