"""People who are signed in to the console, and how they get in."""

from piccolo.columns import UUID, BigSerial, Bytea, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import User


class Session(Table, tablename="sessions", db=DB):
    """A person who is signed in with one browser: the SHA-256 of the cookie's token, which itself is not stored.

    `method` is how they signed in (`link`, `passkey`, `oidc`). It ends at `expires_at`, or when it was not used for
    `idle_seconds`; the row goes when it is ended before. `last_used_at` is renewed at intervals, not by each request.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    hash = Bytea(unique=True)
    method = Text()
    address = Text()
    user_agent = Text(default="")
    idle_seconds = Integer()
    last_used_at = Timestamptz(default=TimestamptzNow())
    expires_at = Timestamptz()
    created_at = columns.created_at()


class SessionUsage(Table, tablename="session_usage", db=DB):
    """A person's requests of the current minute, by all of their sessions. A minute begins with its first request."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, unique=True, on_delete=OnDelete.cascade)
    window_start = Timestamptz(default=TimestamptzNow())
    window_count = Integer(default=0)


class SignInLink(Table, tablename="sign_in_links", db=DB):
    """The SHA-256 of a token with which one person signs in once. The row goes when it is used."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    token_hash = Bytea(unique=True)
    expires_at = Timestamptz()
    created_at = columns.created_at()
