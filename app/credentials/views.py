"""From rows to what a client sees of a database's credentials."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET

from app.contracts.credentials import DatabaseUserStatus, RotationStatus
from app.core.secrets import SecretBox
from app.credentials.rotations import RotationRecord, new_password_place
from app.credentials.schemas import CredentialView, DatabaseUserView, PreviousCredentials, RotationView
from app.credentials.users import DatabaseUserRecord
from app.databases.records import DatabaseRecord
from app.databases.views import MASK, connection_string
from app.engines.base import Access
from app.engines.registry import ADAPTERS

Sessions = Mapping[str, int] | None
"""The number of open sessions by login; None where nobody knows."""

_STATUS: dict[RotationStatus, Literal["pending", "overlapping", "completed", "cancelled"]] = {
    RotationStatus.PENDING: "pending",
    RotationStatus.OVERLAPPING: "overlapping",
    RotationStatus.RETIRING: "overlapping",
    RotationStatus.COMPLETED: "completed",
    RotationStatus.CANCELLING: "cancelled",
    RotationStatus.CANCELLED: "cancelled",
}


def rotation_view(record: DatabaseRecord, rotation: RotationRecord, sessions: Sessions) -> RotationView:
    """The view of a rotation, without the password."""
    return _rotation_view(record, rotation, sessions, MASK)


def made_rotation_view(
    record: DatabaseRecord, rotation: RotationRecord, sessions: Sessions, box: SecretBox
) -> RotationView:
    """The same, with the password: for the request that made the rotation."""
    assert rotation.password_sealed is not None, "it is kept for longer than a request may come again"
    password = box.open(rotation.password_sealed, new_password_place(rotation.uuid))
    view = _rotation_view(record, rotation, sessions, password)
    view.db_password = password
    return view


def user_view(
    record: DatabaseRecord, user: DatabaseUserRecord, sessions: Sessions, box: SecretBox | None = None
) -> DatabaseUserView:
    """The view of a user, with the password where `box` is given: for the request that made the password."""
    password = user.password(box) if box is not None else None
    return DatabaseUserView(
        database_uuid=record.uuid,
        name=user.name,
        db_username=user.login_name,
        db_password=password if password is not None else UNSET,
        connection_string=connection_string(record, user.login_name, password or MASK),
        access=user.access,
        connection_limit=user.connection_limit,
        expires_at=user.expires_at,
        status=user.status,
        open_sessions=_count(sessions, user.login_name),
        created_at=user.created_at,
    )


def credential_views(
    record: DatabaseRecord, latest: RotationRecord | None, users: Sequence[DatabaseUserRecord], sessions: Sessions
) -> list[CredentialView]:
    """The database's own login, the one that the latest rotation took the place of, and the users' logins."""
    own = CredentialView(
        database_uuid=record.uuid,
        db_username=record.login,
        user=None,
        access=Access.READ_WRITE,
        status="active",
        created_at=record.credentials_created_at or record.created_at,
        retires_at=None,
        open_sessions=_count(sessions, record.login),
    )
    previous = [_previous(record, latest, sessions)] if latest is not None and latest.proven_at is not None else []
    return [own, *previous, *(_of_user(record, user, sessions) for user in users)]


def _previous(record: DatabaseRecord, rotation: RotationRecord, sessions: Sessions) -> CredentialView:
    return CredentialView(
        database_uuid=record.uuid,
        db_username=rotation.previous_login,
        user=None,
        access=Access.READ_WRITE,
        status="revoked" if rotation.status is RotationStatus.COMPLETED else "retiring",
        created_at=rotation.previous_created_at or record.created_at,
        retires_at=rotation.retires_at,
        open_sessions=_previous_sessions(record, rotation, sessions),
    )


def _of_user(record: DatabaseRecord, user: DatabaseUserRecord, sessions: Sessions) -> CredentialView:
    return CredentialView(
        database_uuid=record.uuid,
        db_username=user.login_name,
        user=user.name,
        access=user.access,
        status="retiring" if user.status is DatabaseUserStatus.REMOVING else "active",
        created_at=user.rotated_at or user.created_at,
        retires_at=user.expires_at,
        open_sessions=_count(sessions, user.login_name),
    )


def _rotation_view(record: DatabaseRecord, rotation: RotationRecord, sessions: Sessions, password: str) -> RotationView:
    return RotationView(
        uuid=rotation.uuid,
        database_uuid=record.uuid,
        status=_STATUS[rotation.status],
        db_username=rotation.login_name,
        connection_string=connection_string(record, rotation.login_name, password),
        previous=PreviousCredentials(
            db_username=rotation.previous_login,
            retires_at=rotation.retires_at,
            open_sessions=_previous_sessions(record, rotation, sessions),
        ),
        created_at=rotation.created_at,
        completed_at=rotation.completed_at,
    )


def _previous_sessions(record: DatabaseRecord, rotation: RotationRecord, sessions: Sessions) -> int | None:
    if not ADAPTERS[record.engine].distinguishes_sessions:
        return None
    return 0 if rotation.status is RotationStatus.COMPLETED else _count(sessions, rotation.previous_login)


def _count(sessions: Sessions, login: str) -> int | None:
    return None if sessions is None else sessions.get(login, 0)
