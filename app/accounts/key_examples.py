"""API keys, for the API's description."""

from datetime import UTC, datetime
from uuid import UUID

from app.accounts.key_schemas import ControlsView, KeyView, PreviousSecret, RevokedApiKey
from app.databases.examples import EXAMPLE_UUID

EXAMPLE_API_KEY = "pk_live_QwErTyUiOpAsDfGhJkLzXcVbNmQwErTy"
_CREATED_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)

EXAMPLE_KEY = KeyView(
    id=12,
    user_id=3,
    name="nightly report",
    preview="pk_live_QwEr…ErTy",
    permissions=["databases:read", "queries:write"],
    team_id=1,
    ended_teams=[],
    databases=[UUID(EXAMPLE_UUID)],
    status="active",
    controls=ControlsView(
        requests_per_minute=60, monthly_quota=10_000, allowed_ip_list=["192.0.2.0/24"], inactive_ttl_days=90
    ),
    expires_at=datetime(2027, 1, 1, tzinfo=UTC),
    previous=None,
    minted_by=7,
    last_used_at=None,
    revoked_at=None,
    created_at=_CREATED_AT,
)
EXAMPLE_ROTATED = KeyView(
    id=12,
    user_id=3,
    name="nightly report",
    preview="pk_live_QwEr…ErTy",
    permissions=["databases:read", "queries:write"],
    team_id=1,
    ended_teams=[],
    databases=[UUID(EXAMPLE_UUID)],
    status="active",
    controls=EXAMPLE_KEY.controls,
    expires_at=datetime(2027, 1, 1, tzinfo=UTC),
    previous=PreviousSecret(expires_at=datetime(2026, 11, 22, 8, 0, tzinfo=UTC)),
    minted_by=7,
    last_used_at=datetime(2026, 11, 21, 7, 0, tzinfo=UTC),
    revoked_at=None,
    created_at=_CREATED_AT,
)
EXAMPLE_REVOKED = RevokedApiKey(
    id=12, revoked=True, revoked_at=datetime(2026, 11, 21, 8, 0, tzinfo=UTC), ended_teams=[], minted_revoked=[]
)
