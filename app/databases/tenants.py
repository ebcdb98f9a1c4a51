"""A database as its engine knows it."""

from app.core.ids import marker
from app.core.secrets import SecretBox
from app.databases.records import DatabaseRecord
from app.engines.base import Tenant
from app.hosts.adapters import password_place


def tenant_of(record: DatabaseRecord, box: SecretBox) -> Tenant:
    """Without its password once that is forgotten; nothing that still happens then needs it."""
    sealed = record.password_sealed
    password = box.open(sealed, password_place(record.uuid)) if sealed is not None else ""
    return Tenant(name=record.engine_name, password=password, marker=marker(record.uuid))
