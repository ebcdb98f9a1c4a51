"""Examples for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from app.accounts.sessions.oidc_schemas import SignInMethods, SignInRedirect
from app.accounts.sessions.passkey_schemas import PasskeyView
from app.accounts.sessions.schemas import CurrentSessionView, InvitationPreview, PersonView, SessionView, TeamPlaceView
from app.auth.roles import Role
from app.auth.sessions import SignInMethod

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
EXAMPLE_METHODS = SignInMethods(passkeys=True, provider="id.example.com")
EXAMPLE_REDIRECT = SignInRedirect(url="https://id.example.com/authorize?response_type=code&client_id=headwater")
EXAMPLE_INVITATION_TOKEN = "inv_QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDfGhJ"  # noqa: S105 - an example
EXAMPLE_PREVIEW = InvitationPreview(
    team="Orders",
    role=Role.MEMBER,
    email="ada@example.com",
    status="open",
    expires_at=datetime(2026, 11, 27, 8, 0, tzinfo=UTC),
)
EXAMPLE_LINK_TOKEN = "mY7nS3bQZ0h1kWq5vJ8xT2cR6eL9uPoA4dGfHiBzXsE"  # noqa: S105 - an example
EXAMPLE_PASSKEY = PasskeyView(
    uuid=UUID("0c8a1e2b-7f34-4c3d-9a51-6f2f8f0b7d11"),
    name="Laptop",
    host="databases.example.com",
    synced=False,
    created_at=datetime(2026, 11, 20, 8, 5, tzinfo=UTC),
    last_used_at=None,
)
EXAMPLE_OPTIONS = {"challenge": "q1vK3c5m9nJx7Lr2", "rpId": "databases.example.com", "userVerification": "required"}
EXAMPLE_CREDENTIAL = {
    "id": "t0xVt1ZbTzC9Xg",
    "rawId": "t0xVt1ZbTzC9Xg",
    "type": "public-key",
    "response": {"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0", "attestationObject": "o2NmbXRkbm9uZQ"},
}
EXAMPLE_ASSERTION = {
    "id": "t0xVt1ZbTzC9Xg",
    "rawId": "t0xVt1ZbTzC9Xg",
    "type": "public-key",
    "response": {
        "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0",
        "authenticatorData": "SZYN5YgOjGh0NBcPZHZgW4",
        "signature": "MEUCIQDx2Wm9",
        "userHandle": "dXNlcg",
    },
}
