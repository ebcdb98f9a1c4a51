"""Examples for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.auth.roles import Role
from app.auth.sessions import SignInMethod
from app.sessions.schemas import CurrentSessionView, PersonView, SessionView, TeamPlaceView

EXAMPLE_SESSION = SessionView(
    uuid=UUID("5b0c3f6e-9d1a-4c55-8a0e-3f1f2d7c9b10"),
    current=True,
    method=SignInMethod.PASSKEY,
    address="192.0.2.10",
    user_agent="Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    created_at=datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
    last_used_at=datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
    expires_at=datetime(2026, 12, 4, 8, 0, tzinfo=UTC),
    idle_expires_at=datetime(2026, 11, 20, 21, 30, tzinfo=UTC),
)
EXAMPLE_CURRENT = CurrentSessionView(
    **msgspec.structs.asdict(EXAMPLE_SESSION),
    user=PersonView(id=1, name="Ada Lovelace", email="ada@example.com"),
    teams=[TeamPlaceView(id=1, name="Orders", tier="pro", role=Role.OWNER)],
    operator=False,
)
EXAMPLE_LINK_TOKEN = "mY7nS3bQZ0h1kWq5vJ8xT2cR6eL9uPoA4dGfHiBzXsE"  # noqa: S105 - an example
