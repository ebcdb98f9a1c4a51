"""Rows of rotations and databases as their engine knows them."""

from app.core.secrets import SecretBox
from app.credentials.rotations import RotationRecord, new_password_place, previous_password_place
from app.engines.base import Access, Login


def new_login(rotation: RotationRecord, box: SecretBox) -> Login:
    """What a rotation under way makes the database's."""
    assert rotation.password_sealed is not None, "a rotation under way has both passwords"
    password = box.open(rotation.password_sealed, new_password_place(rotation.uuid))
    return _primary(rotation.login_name, password)


def previous_login(rotation: RotationRecord, box: SecretBox) -> Login:
    """What a rotation under way takes the place of."""
    assert rotation.previous_sealed is not None, "a rotation under way has both passwords"
    password = box.open(rotation.previous_sealed, previous_password_place(rotation.uuid))
    return _primary(rotation.previous_login, password)


def _primary(name: str, password: str) -> Login:
    return Login(name=name, password=password, access=Access.READ_WRITE, connections=None)
