"""A database's password: where it lies sealed, and what the engine is given."""

from uuid import UUID

from app.core.ids import marker
from app.core.secrets import SecretBox, SecretLocation
from app.databases.records import DatabaseRecord
from app.engines.base import Tenant
from app.store.sealed import SealedColumn

SEALED_PASSWORD = SealedColumn(table="databases", column="password_sealed", row="s.uuid::text")
"""At `password_place`."""


def password_place(database: UUID) -> SecretLocation:
    return SecretLocation("databases", "password_sealed", str(database))


def tenant_of(record: DatabaseRecord, box: SecretBox) -> Tenant:
    """The database as its engine knows it. Without a password where that was deleted with the data: nothing that
    still happens then needs it."""
    sealed = record.password_sealed
    password = box.open(sealed, password_place(record.uuid)) if sealed is not None else ""
    return Tenant(name=record.engine_name, password=password, marker=marker(record.uuid))
