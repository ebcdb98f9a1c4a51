"""Teams, members and invitations, for the API's description."""

from datetime import UTC, datetime

from app.accounts.team_schemas import InvitationView, MemberView, TeamView
from app.auth.roles import Role

EXAMPLE_TOKEN = "inv_QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDfGhJ"  # noqa: S105 - an example
_CREATED_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)

EXAMPLE_TEAM = TeamView(id=1, name="Orders", tier="pro", queries="ddl", role=Role.OWNER, created_at=_CREATED_AT)
EXAMPLE_MEMBER = MemberView(
    team_id=1, user_id=3, name="Ada Lovelace", email="ada@example.com", role=Role.MEMBER, joined_at=_CREATED_AT
)
EXAMPLE_INVITATION = InvitationView(
    id=5,
    team_id=1,
    role=Role.MEMBER,
    email="ada@example.com",
    status="open",
    invited_by=2,
    accepted_by=None,
    accepted_at=None,
    expires_at=datetime(2026, 11, 27, 8, 0, tzinfo=UTC),
    created_at=_CREATED_AT,
)
