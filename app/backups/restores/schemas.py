"""The shapes of restorations on the wire."""

from uuid import UUID

from msgspec import Struct


class RestoreInPlace(Struct, kw_only=True, forbid_unknown_fields=True):
    backup_uuid: UUID
    """A completed backup of one of the caller's teams, of the same engine; of this database or of another one."""
