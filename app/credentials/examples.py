"""Examples for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.contracts.credentials import DatabaseUserStatus
from app.credentials.schemas import (
    CredentialView,
    DatabaseUserView,
    PreviousCredentials,
    RemovedDatabaseUser,
    RotationView,
)
from app.databases.examples import EXAMPLE_DATABASE
from app.databases.views import MASK
from app.engines.base import Access

_AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
_UNTIL = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
_LOGIN = f"{EXAMPLE_DATABASE.db_name}_l1"
_USER = f"{EXAMPLE_DATABASE.db_name}_u2"
_SECRET = "Xk7wq2RzN5tPbVh3mLcD8sJfYgA4uEyK"  # noqa: S105 - nobody's


def _string(login: str, password: str) -> str:
    address = f"{EXAMPLE_DATABASE.host}:{EXAMPLE_DATABASE.port}/{EXAMPLE_DATABASE.db_name}"
    return f"postgresql://{login}:{password}@{address}"


EXAMPLE_ROTATION = RotationView(
    uuid=UUID("0b8f3c52-5a1e-4f0e-9d0f-2a7c1f3e6b55"),
    database_uuid=EXAMPLE_DATABASE.uuid,
    status="overlapping",
    db_username=_LOGIN,
    connection_string=_string(_LOGIN, MASK),
    previous=PreviousCredentials(db_username=EXAMPLE_DATABASE.db_name, retires_at=_UNTIL, open_sessions=3),
    created_at=_AT,
    completed_at=None,
)
EXAMPLE_MADE_ROTATION = msgspec.structs.replace(
    EXAMPLE_ROTATION, db_password=_SECRET, connection_string=_string(_LOGIN, _SECRET)
)
EXAMPLE_COMPLETED_ROTATION = msgspec.structs.replace(
    EXAMPLE_ROTATION,
    status="completed",
    previous=PreviousCredentials(db_username=EXAMPLE_DATABASE.db_name, retires_at=_UNTIL, open_sessions=0),
    completed_at=_UNTIL,
)
EXAMPLE_USER = DatabaseUserView(
    database_uuid=EXAMPLE_DATABASE.uuid,
    name="reporting",
    db_username=_USER,
    connection_string=_string(_USER, MASK),
    access=Access.READ_ONLY,
    connection_limit=2,
    expires_at=None,
    status=DatabaseUserStatus.ACTIVE,
    open_sessions=1,
    created_at=_AT,
)
EXAMPLE_MADE_USER = msgspec.structs.replace(
    EXAMPLE_USER, db_password=_SECRET, connection_string=_string(_USER, _SECRET), open_sessions=0
)
EXAMPLE_REMOVED_USER = RemovedDatabaseUser(database_uuid=EXAMPLE_DATABASE.uuid, name="reporting")
EXAMPLE_CREDENTIALS = [
    CredentialView(
        database_uuid=EXAMPLE_DATABASE.uuid,
        db_username=_LOGIN,
        user=None,
        access=Access.READ_WRITE,
        status="active",
        created_at=_AT,
        retires_at=None,
        open_sessions=1,
    ),
    CredentialView(
        database_uuid=EXAMPLE_DATABASE.uuid,
        db_username=EXAMPLE_DATABASE.db_name,
        user=None,
        access=Access.READ_WRITE,
        status="retiring",
        created_at=EXAMPLE_DATABASE.created_at,
        retires_at=_UNTIL,
        open_sessions=3,
    ),
]
