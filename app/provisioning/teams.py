"""The team that a new database is to belong to."""

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.teams import TeamRecord, get_team
from app.databases.records import count_owned
from app.databases.retention import check_retained
from app.databases.schemas import CreateDatabase
from app.quotas.plans import Plans, check_plan, check_quotas


def asked_team(principal: Principal, request: CreateDatabase) -> TeamRecord:
    """The team that is to own the database. Raises `InvalidField`, `InsufficientRole` or `NotAMember`."""
    asked = request.team_id if isinstance(request.team_id, int) else None
    place = principal.team_ids.index(principal.owning_team(asked, "database"))
    note(team_id=principal.team_ids[place])
    return TeamRecord(principal.team_ids[place], principal.team_tiers[place], principal.team_names[place])


async def team_for_create(plans: Plans, principal: Principal, request: CreateDatabase) -> TeamRecord:
    """The same, if it may have this database beside those that it has and those that it deleted. In a transaction, in
    which a team of the free tier stays locked. Raises `InvalidField`, `PlanLimitExceeded` or `DeletionsPending`."""
    team, owned = asked_team(principal, request), 0
    if team.tier == "free":
        # Locked, so that two concurrent creates don't both find room for the one database.
        team = await get_team(team.id, lock=True)
        owned = await count_owned(team.id)
    check_plan(team.tier, request.plan_name, owned)
    check_quotas(plans, team.tier, request.plan_name, request.quotas)
    await check_retained(plans, team)
    return team
