"""Operators: whether somebody is one, and how one acts for a team, by the functions that serve the team's own
requests."""

from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.scopes import TEAM_SCOPES
from app.auth.teams import TeamRecord
from app.core.clock import utc_now
from app.core.errors import InvalidField, OperatorsOnly
from app.store.session import fetch_exists, fetch_one, fetch_value


async def keep_operator(user_id: int) -> None:
    """Keeps the user an operator until the end of the transaction. Raises `OperatorsOnly` for somebody who is not one,
    or no longer is."""
    if not await fetch_exists("SELECT 1 FROM users WHERE id = $1 AND operator FOR SHARE", user_id):
        raise OperatorsOnly("You are not marked as an operator.")


async def acting_for(team_id: int) -> Principal:
    """A caller in that team alone, with every scope of teams, and with no key. Raises `InvalidField` where there is no
    such team, or nobody is in it."""
    team = await fetch_one(TeamRecord, "SELECT id, tier, name FROM teams WHERE id = $1 AND deleted_at IS NULL", team_id)
    user_id = await fetch_value(int, "SELECT min(user_id) FROM memberships WHERE team_id = $1", team_id)
    if team is None or user_id is None:
        raise InvalidField("team", f"There is no team {team_id}, or nobody is in it.")
    return Principal(
        user_id=user_id,
        user_name="",
        user_email="",
        key_id=0,
        key_name="",
        preview="",
        scopes=[scope.value for scope in TEAM_SCOPES],
        requests_per_minute=1,
        monthly_quota=None,
        allowed_ips=[],
        inactive_ttl_days=None,
        last_used_at=None,
        key_team_id=None,
        databases=None,
        team_ids=[team.id],
        team_tiers=[team.tier],
        team_names=[team.name],
        team_roles=[Role.OWNER],
        admitted_at=utc_now(),
    )
