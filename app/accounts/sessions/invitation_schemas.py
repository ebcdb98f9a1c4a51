"""The shape of what the holder of an invitation sees of it, on the wire."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from app.auth.roles import Role
from app.core.clock import Moment


class HeldInvitation(Struct, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=128)]


class InvitationPreview(Struct, kw_only=True):
    """What somebody is invited to."""

    object: Literal["invitation_preview"] = "invitation_preview"
    team: str
    """The team's name."""
    role: Role
    """The role that one gets there."""
    email: str | None
    """For whom alone it is; null for whoever has the link."""
    status: Literal["open", "accepted", "expired"]
    expires_at: Moment
