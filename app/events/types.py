"""Every kind of event. Interface specification, section 6."""

from enum import StrEnum


class EventType(StrEnum):
    DATABASE_PROVISIONING_STARTED = "database.provisioning_started"
    """A new database is queued for provisioning."""
    DATABASE_PROVISIONED = "database.provisioned"
    """A database is active and ready for connections."""
    DATABASE_DELETED = "database.deleted"
    """A database is deleted."""
