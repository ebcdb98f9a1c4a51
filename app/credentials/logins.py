"""Rows of rotations and databases as their engine knows them."""

from uuid import UUID

from app.contracts.credentials import DatabaseUserStatus
from app.core.secrets import SecretBox
from app.credentials import rotations, users
from app.credentials.rotations import RotationRecord, new_password_place, previous_password_place
from app.databases import records
from app.engines.base import Access, Login


def new_login(rotation: RotationRecord, box: SecretBox) -> Login:
    """The login that a rotation under way makes the database's own."""
    assert rotation.password_sealed is not None, "a rotation under way has both passwords"
    password = box.open(rotation.password_sealed, new_password_place(rotation.uuid))
    return primary_login(rotation.login_name, password)


def previous_login(rotation: RotationRecord, box: SecretBox) -> Login:
    """The login that a rotation under way replaces."""
    assert rotation.previous_sealed is not None, "a rotation under way has both passwords"
    password = box.open(rotation.previous_sealed, previous_password_place(rotation.uuid))
    return primary_login(rotation.previous_login, password)


async def other_logins(database: UUID, box: SecretBox) -> list[Login]:
    """The logins that a database must accept besides its own: during an overlap the previous one, and those of its
    users."""
    record = await records.find(database)
    if record is None:
        return []
    rotation = await rotations.find_overlapping(record.id)
    previous = [previous_login(rotation, box)] if rotation is not None else []
    made = await users.list_of(record.id)
    return [*previous, *(user.login(box) for user in made if user.status is DatabaseUserStatus.ACTIVE)]


def primary_login(name: str, password: str) -> Login:
    """One of the database's own logins: not a user's."""
    return Login(name=name, password=password, access=Access.READ_WRITE, connections=None)
