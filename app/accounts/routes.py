"""`GET /api/v1/me`. Interface specification, sections 2.6 and 4.2."""

from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from litestar import Request, get
from msgspec import Struct

from app.accounts.key_schemas import ControlsView
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import Reach
from app.core.clock import Moment
from app.web.envelope import Item
from app.web.operation import operation


class UserView(Struct, kw_only=True):
    object: Literal["user"] = "user"
    name: str
    email: str


class ApiKeyView(Struct, kw_only=True):
    object: Literal["api_key"] = "api_key"
    id: int
    name: str
    preview: str
    permissions: list[str]
    status: Literal["active"] = "active"
    """Always: no other key gets this far."""
    last_used_at: Moment | None
    controls: ControlsView
    team_id: int | None
    """The one team that the key is for; null for all of the user's."""
    databases: list[UUID] | None
    """The databases that the key is for; null for all of its teams'."""


class PlaceView(Struct, kw_only=True):
    """A team that the key is for, and the user's role there."""

    id: int
    name: str
    role: Role


class Context(Struct, kw_only=True):
    user: UserView
    api_key: ApiKeyView
    teams: list[PlaceView]
    """The primary one first."""


_EXAMPLE = Context(
    user=UserView(name="Ada Lovelace", email="ada@example.com"),
    api_key=ApiKeyView(
        id=7,
        name="deploy",
        preview="pk_live_Xk3v…9aQe",
        permissions=["databases:*"],
        last_used_at=datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
        controls=ControlsView(
            requests_per_minute=120, monthly_quota=None, allowed_ip_list=["192.0.2.0/24"], inactive_ttl_days=90
        ),
        team_id=None,
        databases=None,
    ),
    teams=[PlaceView(id=1, name="Orders", role=Role.OWNER)],
)


@get(
    "/me",
    **operation(
        "getMe",
        "Who is calling, with which key",
        reach=Reach.PERSON,
        answers={200: Item[Context]},
        examples={200: Item(data=_EXAMPLE)},
    ),
)
async def get_me(request: Request[Principal, Any, Any]) -> Item[Context]:
    caller = request.user
    controls = ControlsView(
        requests_per_minute=caller.requests_per_minute,
        monthly_quota=caller.monthly_quota,
        allowed_ip_list=caller.allowed_ips,
        inactive_ttl_days=caller.inactive_ttl_days,
    )
    key = ApiKeyView(
        id=caller.key_id,
        name=caller.key_name,
        preview=caller.preview,
        permissions=caller.scopes,
        last_used_at=caller.last_used_at,
        controls=controls,
        team_id=caller.key_team_id,
        databases=caller.databases,
    )
    places = zip(caller.team_ids, caller.team_names, caller.team_roles, strict=True)
    teams = [PlaceView(id=team_id, name=name, role=role) for team_id, name, role in places]
    return Item(data=Context(user=UserView(name=caller.user_name, email=caller.user_email), api_key=key, teams=teams))
