"""People who are signed in to the console, and how they get in."""

from piccolo.columns import UUID, Array, BigInt, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.constraints import Unique
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


class SignInAttempt(Table, tablename="sign_in_attempts", db=DB):
    """How often somebody at one address, or in one IPv6 network of 64 bits, tried to sign in within a minute."""

    id = BigSerial(primary_key=True)
    network = Text()
    minute = Timestamptz()
    attempts = Integer(default=0)
    one_a_minute = Unique([network, minute])


class SignInLink(Table, tablename="sign_in_links", db=DB):
    """The SHA-256 of a token with which one person signs in once. The row goes when it is used."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    token_hash = Bytea(unique=True)
    expires_at = Timestamptz()
    created_at = columns.created_at()


class Passkey(Table, tablename="passkeys", db=DB):
    """A person's public key, whose private one an authenticator keeps. WebAuthn level 3, section 4. It is for the host
    `rp_id` alone."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    rp_id = Text()
    credential_id = Bytea(unique=True)
    public_key = Bytea()
    sign_count = BigInt(default=0)
    name = Text()
    transports = Array(base_column=Text(), default=list)
    synced = Boolean(default=False)
    last_used_at = columns.moment()
    created_at = columns.created_at()


class PasskeyChallenge(Table, tablename="passkey_challenges", db=DB):
    """The SHA-256 of what an authenticator is to sign, once. `user_id` is who adds a passkey; null for a sign-in."""

    id = BigSerial(primary_key=True)
    hash = Bytea(unique=True)
    user_id = ForeignKey(User, null=True, default=None, on_delete=OnDelete.cascade)
    expires_at = Timestamptz()
    created_at = columns.created_at()


class OidcSubject(Table, tablename="oidc_subjects", db=DB):
    """The person to whom a subject at an OpenID Connect provider belongs."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    issuer = Text()
    subject = Text()
    created_at = columns.created_at()
    one_person_each = Unique([issuer, subject])
    one_for_each_person = Unique([issuer, user_id])
