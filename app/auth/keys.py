"""API keys: minted once, stored as a SHA-256, revoked immediately."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import MAXYEAR, datetime

import msgspec

from app.auth.authority import Authority
from app.auth.client_address import canonical_network
from app.auth.scopes import OPERATOR_SCOPES, Scope
from app.auth.users import check_name
from app.core.errors import InvalidField, NotFound
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_scalar, fetch_value, transaction

PREFIX = "pk_live_"
MOST_INACTIVE_DAYS = 36_500
"""A hundred years. So many days from now are a moment that our database can compute."""


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    api_key: str
    """Shown once: only its SHA-256 is stored."""


class KeyControls(msgspec.Struct, frozen=True, kw_only=True):
    """Interface specification, section 5, point 6; and an expiry."""

    requests_per_minute: int = 120
    monthly_quota: int | None = None
    allowed_ips: tuple[str, ...] = ()
    """CIDR networks, IPv4 or IPv6; without any: every address."""
    inactive_ttl_days: int | None = None
    expires_at: datetime | None = None
    """Timezone-aware."""


class KeyLine(msgspec.Struct, frozen=True, kw_only=True):
    """A key as operators see it: nothing of it opens anything."""

    id: int
    user_id: int
    name: str
    preview: str
    scopes: list[str]
    requests_per_minute: int
    monthly_quota: int | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


def hash_key(api_key: str) -> bytes:
    """What is stored of a key. A plain digest suffices: a key carries 190 random bits, so none can be guessed."""
    return hashlib.sha256(api_key.encode()).digest()


def preview_of(api_key: str) -> str:
    """What is shown of a key later."""
    return f"{api_key[:12]}…{api_key[-4:]}"


async def create_key(*, user_id: int, name: str, scopes: Sequence[str], controls: KeyControls | None = None) -> NewKey:
    """Raises `NotFound` for an unknown user, `InvalidField` for a blank name, and naming the control or scope that
    can't be used."""
    controls = controls or KeyControls()
    check_name(name)
    _check(scopes, controls)
    networks = known_networks(controls.allowed_ips, "allow_ip")
    operator = await fetch_value(bool, "SELECT operator FROM users WHERE id = $1", user_id)
    if operator is None:
        raise NotFound("user")
    if not operator and OPERATOR_SCOPES.intersection(scopes):
        raise InvalidField("scopes", "Only an operator's keys have operator:read and operator:write.")
    limits = Authority(
        scopes=list(scopes),
        requests_per_minute=controls.requests_per_minute,
        monthly_quota=controls.monthly_quota,
        allowed_ips=networks,
        inactive_ttl_days=controls.inactive_ttl_days,
        expires_at=controls.expires_at,
        team_id=None,
        databases=None,
    )
    return await insert_key(user_id, name, limits)


async def insert_key(user_id: int, name: str, limits: Authority, *, minted_by: int | None = None) -> NewKey:
    """A new key with these limits, which have been checked."""
    api_key = PREFIX + secrets.token_urlsafe(24)
    key_id = await fetch_scalar(
        int,
        """
        WITH key AS (
            INSERT INTO api_keys (user_id, name, preview, hash, scopes, requests_per_minute, monthly_quota,
                                  allowed_ips, inactive_ttl_days, expires_at, team_id, databases, minted_by,
                                  ended_teams)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id
        )
        INSERT INTO api_key_usage (key_id, window_start) SELECT id, 'epoch' FROM key RETURNING key_id AS id
        """,
        user_id,
        name,
        preview_of(api_key),
        hash_key(api_key),
        limits.scopes,
        limits.requests_per_minute,
        limits.monthly_quota,
        limits.allowed_ips,
        limits.inactive_ttl_days,
        limits.expires_at,
        limits.team_id,
        limits.databases,
        minted_by,
        limits.ended_teams,
    )
    return NewKey(id=key_id, api_key=api_key)


async def is_key_active(api_key: str) -> bool:
    """Whether there is such a key that was not revoked."""
    return await fetch_exists("SELECT 1 FROM api_keys WHERE hash = $1 AND revoked_at IS NULL", hash_key(api_key))


async def list_keys(*, user_id: int | None = None, with_revoked: bool = False) -> list[KeyLine]:
    """The keys, newest first; of all users unless one is named."""
    return await fetch_all(
        KeyLine,
        """
        SELECT k.id, k.user_id, k.name, k.preview, k.scopes, k.requests_per_minute, k.monthly_quota, k.expires_at,
               c.last_used_at, k.revoked_at, k.created_at
        FROM api_keys k JOIN api_key_usage c ON c.key_id = k.id
        WHERE ($1::bigint IS NULL OR k.user_id = $1) AND ($2 OR k.revoked_at IS NULL) ORDER BY k.id DESC
        """,
        user_id,
        with_revoked,
    )


class RevokedKey(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    revoked: bool = True
    revoked_at: datetime
    already_revoked: bool
    """Whether the key was revoked before this call."""


async def revoke_key(key_id: int) -> RevokedKey:
    """Revokes a key: the next request with it is refused. Revoking twice is fine. Waits until none of its user's keys
    is just being made or changed. Raises `NotFound`."""
    async with transaction():
        await execute(
            "SELECT 1 FROM users WHERE id = (SELECT user_id FROM api_keys WHERE id = $1) FOR NO KEY UPDATE", key_id
        )
        revoked = await fetch_one(
            RevokedKey,
            """
            UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, now())
            FROM (SELECT id, revoked_at FROM api_keys WHERE id = $1 FOR UPDATE) before WHERE k.id = before.id
            RETURNING k.id, k.revoked_at, before.revoked_at IS NOT NULL AS already_revoked
            """,
            key_id,
        )
    if revoked is None:
        raise NotFound("API key")
    return revoked


def known_networks(texts: Sequence[str], field: str) -> list[str]:
    """The networks as they are stored. One statement lets in the requests of many keys: a network that it couldn't read
    would fail them all. Raises `InvalidField` for `field`."""
    networks = []
    for text in texts:
        try:
            networks.append(canonical_network(text))
        except ValueError:
            raise InvalidField(field, f"{text!r} is not an IP address or network.") from None
    return networks


def check_expiry(expires_at: datetime) -> None:
    """Raises `InvalidField` for a moment in the calendar's last year: in UTC it may be after the end of that year."""
    if expires_at.year >= MAXYEAR:
        raise InvalidField("expires_at", f"Expected a year before {MAXYEAR}.")


def _check(scopes: Sequence[str], controls: KeyControls) -> None:
    known = [scope.value for scope in Scope]
    for scope in scopes:
        if scope not in known:
            raise InvalidField("scopes", f"{scope!r} is no scope; the scopes are {', '.join(known)}.")
    if not scopes:
        raise InvalidField("scopes", "A key needs at least one scope.")
    if controls.expires_at is not None:
        check_expiry(controls.expires_at)
    for field, most in (
        ("requests_per_minute", 2**31 - 1),
        ("monthly_quota", 2**31 - 1),
        ("inactive_ttl_days", MOST_INACTIVE_DAYS),
    ):
        value = getattr(controls, field)
        if value is not None and not 1 <= value <= most:
            raise InvalidField(field, f"{field}: expected a whole number from 1 to {most}.")
