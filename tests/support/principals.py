"""Callers as the service's functions get them, for tests without requests."""

from app.auth.principal import Principal
from app.auth.roles import Role
from app.core.clock import utc_now
from tests.support.client import Caller


def principal_of(caller: Caller) -> Principal:
    return Principal(
        user_id=caller.user_id,
        user_name="",
        user_email="",
        key_id=caller.key_id,
        key_name="",
        preview="",
        scopes=[],
        requests_per_minute=1,
        monthly_quota=None,
        allowed_ips=[],
        inactive_ttl_days=None,
        last_used_at=None,
        key_team_id=None,
        databases=None,
        team_ids=[caller.team_id],
        team_tiers=["pro"],
        team_names=["team"],
        team_roles=[Role.OWNER],
        admitted_at=utc_now(),
    )
