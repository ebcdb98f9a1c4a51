"""The shapes of API keys on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.auth.key_records import KeyRecord
from app.auth.keys import MOST_INACTIVE_DAYS
from app.auth.scopes import Scope
from app.core.clock import Moment
from app.core.context import current_request_id


class ControlsView(Struct, kw_only=True):
    requests_per_minute: int
    monthly_quota: int | None
    allowed_ip_list: list[str]
    inactive_ttl_days: int | None


MAX_OVERLAP_SECONDS, DEFAULT_OVERLAP_SECONDS = 604_800, 86_400
_MOST_DATABASES, _MOST_NETWORKS = 200, 100

Name = Annotated[str, Meta(min_length=1, max_length=255)]
ScopeName = Annotated[str, Meta(extra_json_schema={"enum": [scope.value for scope in Scope]})]
"""Checked by the service, whose refusal names the scopes that there are."""
Permissions = Annotated[list[ScopeName], Meta(min_length=1, max_length=len(Scope))]
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Days = Annotated[int, Meta(ge=1, le=MOST_INACTIVE_DAYS)]
Networks = Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=_MOST_NETWORKS)]
"""CIDR networks; checked by the service."""
Databases = Annotated[list[UUID], Meta(min_length=1, max_length=_MOST_DATABASES)]
TeamId = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class KeyControlsChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """A limit that is left out stays as it is; a new key gets the asking key's. An empty list of networks means every
    address, and null no limit."""

    requests_per_minute: Count | UnsetType = UNSET
    monthly_quota: Count | UnsetType | None = UNSET
    allowed_ip_list: Networks | UnsetType = UNSET
    inactive_ttl_days: Days | UnsetType | None = UNSET


class KeyChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes of a key. A field that is left out stays as it is; null takes a limit away."""

    name: Name | UnsetType = UNSET
    permissions: Permissions | UnsetType = UNSET
    team_id: TeamId | UnsetType | None = UNSET
    databases: Databases | UnsetType | None = UNSET
    expires_at: Moment | UnsetType | None = UNSET
    controls: KeyControlsChange = field(default_factory=KeyControlsChange)


class CreateKey(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new key. A field that is left out is as the asking key's."""

    name: Name
    permissions: Permissions
    team_id: TeamId | UnsetType | None = UNSET
    databases: Databases | UnsetType | None = UNSET
    expires_at: Moment | UnsetType | None = UNSET
    controls: KeyControlsChange = field(default_factory=KeyControlsChange)


class RotateKey(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new text for a key. Without an overlap the old text is refused from now on."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=MAX_OVERLAP_SECONDS)] = DEFAULT_OVERLAP_SECONDS


class PreviousSecret(Struct, kw_only=True):
    """What the key was before its last rotation."""

    expires_at: Moment


class KeyView(Struct, kw_only=True):
    """An API key. It opens nothing: only its first and last characters are shown."""

    object: Literal["api_key"] = "api_key"
    id: int
    user_id: int
    name: str
    preview: str
    permissions: list[str]
    team_id: int | None
    ended_teams: list[int]
    """Teams in which the key does nothing any more: its user has left them since, or an admin has ended it there."""
    databases: list[UUID] | None
    """An admin sees those that are the team's, of a key of somebody else that is for other teams too."""
    status: Literal["active", "expired", "revoked"]
    controls: ControlsView
    expires_at: Moment | None
    previous: PreviousSecret | None
    minted_by: int | None
    last_used_at: Moment | None
    revoked_at: Moment | None
    created_at: Moment


class KeyWithSecret(Struct, kw_only=True):
    """A key with its text, which is shown this once and never again."""

    message: str
    data: KeyView
    api_key: str
    request_id: str = field(default_factory=current_request_id)
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this Idempotency-Key did it, and this is the answer that it got."""


class RevokedApiKey(Struct, kw_only=True):
    object: Literal["api_key"] = "api_key"
    id: int
    revoked: bool
    """False for somebody else's key that is for more than your teams: it is ended there, and goes on elsewhere."""
    revoked_at: Moment | None
    ended_teams: list[int]
    """The teams in which it does nothing any more."""
    minted_revoked: list[int]
    """The keys that were revoked or ended with it."""


def key_view(record: KeyRecord) -> KeyView:
    if record.revoked_at is not None:
        status: Literal["active", "expired", "revoked"] = "revoked"
    else:
        status = "expired" if record.expired else "active"
    return KeyView(
        id=record.id,
        user_id=record.user_id,
        name=record.name,
        preview=record.preview,
        permissions=record.scopes,
        team_id=record.team_id,
        ended_teams=record.ended_teams,
        databases=record.databases,
        status=status,
        controls=ControlsView(
            requests_per_minute=record.requests_per_minute,
            monthly_quota=record.monthly_quota,
            allowed_ip_list=record.allowed_ips,
            inactive_ttl_days=record.inactive_ttl_days,
        ),
        expires_at=record.expires_at,
        previous=None if record.previous_until is None else PreviousSecret(expires_at=record.previous_until),
        minted_by=record.minted_by,
        last_used_at=record.last_used_at,
        revoked_at=record.revoked_at,
        created_at=record.created_at,
    )
