"""A database's password: where it lies sealed, and what the engine is given."""

from uuid import UUID

import msgspec

from app.core.ids import marker
from app.core.secrets import SecretBox, SecretLocation
from app.databases.records import DatabaseRecord
from app.engines.base import Tenant
from app.store.sealed import SealedColumn
from app.store.session import fetch_one

SEALED_PASSWORD = SealedColumn(table="databases", column="password_sealed", row="s.uuid::text")
"""The column of the sealed passwords, each at `password_place`."""


def password_place(database: UUID) -> SecretLocation:
    return SecretLocation("databases", "password_sealed", str(database))


class SealedPassword(msgspec.Struct, frozen=True):
    uuid: UUID
    password_sealed: bytes


async def find_oldest_password() -> SealedPassword | None:
    """The password of the oldest database that has one."""
    return await fetch_one(
        SealedPassword,
        "SELECT uuid, password_sealed FROM databases WHERE password_sealed IS NOT NULL ORDER BY id LIMIT 1",
    )


def tenant_of(record: DatabaseRecord, box: SecretBox) -> Tenant:
    """The database as its engine knows it. The password is empty where it was deleted with the data: nothing that still
    happens then needs it."""
    sealed = record.password_sealed
    password = box.open(sealed, password_place(record.uuid)) if sealed is not None else ""
    return Tenant(name=record.engine_name, login=record.login, password=password, marker=marker(record.uuid))
