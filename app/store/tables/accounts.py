"""Users, their teams and their API keys."""

from piccolo.columns import UUID, Array, BigInt, BigSerial, Boolean, Bytea, Date, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.date import DateNow
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns


class User(Table, tablename="users", db=DB):
    """A person, or a program, that owns API keys. An `operator` also does what concerns all teams."""

    id = BigSerial(primary_key=True)
    email = Text(unique=True)
    name = Text()
    operator = Boolean(default=False)
    created_at = columns.created_at()


class Team(Table, tablename="teams", db=DB):
    """The owner of databases. Its `tier` (`free`, `pro`, `enterprise`) sets its limits; `queries` (`read`, `write`,
    `ddl`) what its questions in natural language may do. The row of a deleted one stays, for what outlives it."""

    id = BigSerial(primary_key=True)
    name = Text()
    tier = Text(default="free")
    queries = Text(default="ddl")
    deleted_at = columns.moment()
    created_at = columns.created_at()


class Membership(Table, tablename="memberships", db=DB):
    """A user in a team, with a role there (`owner`, `admin`, `member`, `viewer`). A user's primary team is the one
    joined first."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.cascade)
    role = Text(default="member")
    created_at = columns.created_at()
    one_per_team = Unique([user_id, team_id])


class Invitation(Table, tablename="invitations", db=DB):
    """The SHA-256 of a token with which whoever accepts first joins a team in a role; where it has an `email`, nobody
    but the person with that address. The token itself is not stored, and the row goes when the invitation is
    withdrawn."""

    id = BigSerial(primary_key=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.cascade)
    role = Text()
    email = Text(null=True, default=None)
    token_hash = Bytea(unique=True)
    invited_by_id = BigInt(null=True, default=None)
    accepted_by_id = BigInt(null=True, default=None)
    accepted_at = columns.moment()
    expires_at = Timestamptz()
    created_at = columns.created_at()


class ApiKey(Table, tablename="api_keys", db=DB):
    """The SHA-256 of a key, and its limits. The key itself is not stored.

    A key may be for one team, and for some databases; null means all of its user's. Until `previous_until` the secret
    that a rotation replaced works too. `minted_by` is the key that asked for this one; null for an operator's. In the
    teams of `ended_teams` it does nothing: its user has left them since it was made.
    """

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    name = Text()
    preview = Text()
    hash = Bytea(unique=True)
    scopes = Array(base_column=Text())
    requests_per_minute = Integer(default=120)
    monthly_quota = Integer(null=True, default=None)
    allowed_ips = Array(base_column=Text(), default=list)
    inactive_ttl_days = Integer(null=True, default=None)
    team_id = ForeignKey(Team, null=True, default=None, on_delete=OnDelete.cascade)
    databases = Array(base_column=UUID(), null=True, default=None)
    ended_teams = Array(base_column=BigInt(), default=list)
    minted_by = BigInt(null=True, default=None)
    previous_hash = Bytea(null=True, default=None)
    previous_until = columns.moment()
    expires_at = columns.moment()
    revoked_at = columns.moment()
    created_at = columns.created_at()


class ApiKeyUsage(Table, tablename="api_key_usage", db=DB):
    """A key's counters for the current minute and the current month; a table of its own, because they change with
    every request. A minute begins with its first request. `month_added` is how much the last statement added to
    `month_count`."""

    id = BigSerial(primary_key=True)
    key_id = ForeignKey(ApiKey, null=False, unique=True, on_delete=OnDelete.cascade)
    last_used_at = columns.moment()
    window_start = Timestamptz(default=TimestamptzNow())
    window_count = Integer(default=0)
    month = Date(default=DateNow())
    month_count = BigInt(default=0)
    month_added = Integer(default=0)
