"""`headwater users`, `keys` and `teams`: who may call the API, and the limits of teams."""

from datetime import datetime

import rich_click as click

from app.accounts import member_service
from app.accounts.sessions.links import SignInUrl, console_url, make_link
from app.audit.actions import Action
from app.audit.drafts import note, note_difference
from app.audit.events import change
from app.auth import keys as api_keys
from app.auth import members
from app.auth import users as accounts
from app.auth.keys import KeyControls, KeyLine, NewKey, RevokedKey
from app.auth.members import MemberRecord
from app.auth.roles import Role
from app.auth.teams import find_details
from app.auth.users import QUERY_CLASSES, TIERS, NewUser, TeamLine, TeamSettings, UserLine, UserSettings
from app.cli.installation import settings, store
from app.cli.output import shown
from app.cli.parameters import POSITIVE
from app.core.clock import utc_now

_TIER = click.Choice(TIERS)
_ROLE = click.Choice([role.value for role in Role])


@click.group()
def users() -> None:
    """Users of the API."""


@users.command("list")
@shown
async def list_users() -> list[UserLine]:
    """Show every user with their teams, the primary one first."""
    async with store():
        return await accounts.list_users()


@users.command("create")
@click.option("--email", required=True, help="The user's address, which must be unique.")
@click.option("--name", required=True, help="The user's display name.")
@click.option("--team", help="The team to join, created if necessary; by default a team of the user's own.")
@click.option("--tier", type=_TIER, help="The tier of a new team; free by default.")
@click.option("--role", type=_ROLE, help="The role in the team: member by default, but owner of one without any.")
@shown
async def create_user(email: str, name: str, team: str | None, tier: str | None, role: str | None) -> NewUser:
    """Create a user, in a team of their own unless a team is named."""
    async with store(), change(Action.USER_CREATE, "user"):
        made = await accounts.create_user(email=email, name=name, team=team, tier=tier, role=role)
        note(subject=("user", made.user_id), team_id=made.team_id)
        return made


@users.command("set")
@click.argument("user_id", type=POSITIVE)
@click.option("--operator/--no-operator", required=True, help="Whether they see and do what concerns all teams.")
@shown
async def set_user(user_id: int, operator: bool) -> UserSettings:
    """Mark a user as an operator, or no longer: their keys with operator scopes stop working at once."""
    async with store(), change(Action.USER_CHANGE, ("user", user_id)):
        changed = await accounts.set_operator(user_id, operator)
        note(changes={"operator": (changed.before, changed.operator)})
        return changed


@users.command("sign-in-link")
@click.argument("user_id", type=POSITIVE)
@shown
async def make_sign_in_link(user_id: int) -> SignInUrl:
    """Make a link with which a user signs in to the console: once, within
    HEADWATER_SIGN_IN_LINK_SECONDS (600 by default). Whoever has it, has the user's rights."""
    known = settings()
    if not known.console:
        raise click.ClickException("There is no console: HEADWATER_CONSOLE is off.")
    async with store(), change(Action.SIGN_IN_LINK_CREATE, ("user", user_id)):
        return await make_link(user_id, console_url(known), known.sign_in_link_seconds)


@click.group()
def keys() -> None:
    """API keys."""


@keys.command("list")
@click.option("--user", "user_id", type=POSITIVE, help="Only keys of this user.")
@click.option("--all", "with_revoked", is_flag=True, help="Include revoked keys.")
@shown
async def list_keys(user_id: int | None, with_revoked: bool) -> list[KeyLine]:
    """Show API keys, newest first, by their first and last characters."""
    async with store():
        return await api_keys.list_keys(user_id=user_id, with_revoked=with_revoked)


@keys.command("create")
@click.option("--user", "user_id", type=POSITIVE, required=True, help="The user's id.")
@click.option("--name", required=True, help="What the key is for.")
@click.option("--scopes", required=True, help="Comma-separated, such as databases:*,webhooks:read.")
@click.option("--requests-per-minute", type=POSITIVE, default=120, show_default=True)
@click.option("--monthly-quota", type=POSITIVE, help="Requests a calendar month (UTC); no limit by default.")
@click.option("--allow-ip", multiple=True, metavar="CIDR", help="A network to call from; may be given several times.")
@click.option("--inactive-ttl-days", type=POSITIVE, help="The key expires after so many days without use.")
@click.option("--expires-at", type=str, metavar="TIME", help="ISO 8601 with an offset.")
@shown
async def create_key(
    user_id: int,
    name: str,
    scopes: str,
    requests_per_minute: int,
    monthly_quota: int | None,
    allow_ip: tuple[str, ...],
    inactive_ttl_days: int | None,
    expires_at: str | None,
) -> NewKey:
    """Create an API key. It is shown only this once."""
    controls = KeyControls(
        requests_per_minute=requests_per_minute,
        monthly_quota=monthly_quota,
        allowed_ips=allow_ip,
        inactive_ttl_days=inactive_ttl_days,
        expires_at=_time(expires_at),
    )
    chosen = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    async with store(), change(Action.KEY_CREATE, "api_key"):
        made = await api_keys.create_key(user_id=user_id, name=name, scopes=chosen, controls=controls)
        note(subject=("api_key", made.id), changes={"user": (None, user_id), "scopes": (None, chosen)})
        return made


@keys.command("revoke")
@click.argument("key_id", type=POSITIVE)
@shown
async def revoke_key(key_id: int) -> RevokedKey:
    """Revoke a key, which is refused from now on."""
    async with store(), change(Action.KEY_REVOKE, ("api_key", key_id)):
        return await api_keys.revoke_key(key_id)


@click.group()
def teams() -> None:
    """Teams."""


@teams.command("list")
@shown
async def list_teams() -> list[TeamLine]:
    """Show every team with its tier, what its questions may do, and how many users and databases it has."""
    async with store():
        return await accounts.list_teams()


@teams.command("set")
@click.argument("team_id", type=POSITIVE)
@click.option("--tier", type=_TIER, help="Sets the team's limits, and its questions a day.")
@click.option("--queries", type=click.Choice(QUERY_CLASSES), help="What its questions in natural language may do.")
@shown
async def set_team(team_id: int, tier: str | None, queries: str | None) -> TeamSettings:
    """Set a team's tier and what its questions may do. What is not given stays."""
    if tier is None and queries is None:
        raise click.UsageError("Give --tier, --queries or both.")
    async with store(), change(Action.TEAM_CHANGE, ("team", team_id), team_id=team_id):
        before = await find_details(team_id)
        changed = await accounts.set_team(team_id, tier=tier, queries=queries)
        if before is not None:
            fields = ("tier", "queries")
            note_difference(*({name: getattr(one, name) for name in fields} for one in (before, changed)))
        return changed


@teams.command("members")
@click.argument("team_id", type=POSITIVE)
@shown
async def list_members(team_id: int) -> list[MemberRecord]:
    """Show who is in a team, with their roles, who joined last first."""
    async with store():
        return await members.list_members(team_id, after=None, limit=member_service.NO_LIMIT)


@teams.command("add-member")
@click.argument("team_id", type=POSITIVE)
@click.argument("user_id", type=POSITIVE)
@click.option("--role", type=_ROLE, default=Role.MEMBER.value, show_default=True)
@shown
async def add_member(team_id: int, user_id: int, role: str) -> MemberRecord:
    """Bring a user into a team. The numbers that bound what people do themselves don't hold here."""
    bounds = (member_service.NO_LIMIT, member_service.NO_LIMIT)
    async with store(), change(Action.MEMBER_ADD, "team_member", team_id=team_id):
        return await member_service.add(None, team_id, user_id=user_id, email=None, role=Role(role), limits=bounds)


@teams.command("set-role")
@click.argument("team_id", type=POSITIVE)
@click.argument("user_id", type=POSITIVE)
@click.argument("role", type=_ROLE)
@shown
async def set_role(team_id: int, user_id: int, role: str) -> MemberRecord:
    """Give a member another role. A team keeps an owner."""
    async with store(), change(Action.MEMBER_CHANGE, "team_member", team_id=team_id):
        return await member_service.change(None, team_id, user_id, Role(role))


@teams.command("remove-member")
@click.argument("team_id", type=POSITIVE)
@click.argument("user_id", type=POSITIVE)
@shown
async def remove_member(team_id: int, user_id: int) -> MemberRecord:
    """Remove a member. The keys that they have do nothing in the team any more, also when they come back."""
    async with store(), change(Action.MEMBER_REMOVE, "team_member", team_id=team_id):
        return await member_service.remove(None, team_id, user_id)


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise _bad_time("expected ISO 8601, such as 2030-01-31T00:00:00+00:00") from None
    if time.tzinfo is None:
        raise _bad_time("the time needs an offset, such as Z or +02:00")
    if time <= utc_now():
        raise _bad_time("this time has passed")
    return time


def _bad_time(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="'--expires-at'")
