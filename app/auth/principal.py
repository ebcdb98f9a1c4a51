"""Who is calling: from the Authorization header to a user, a key and its teams, in one round trip."""

from datetime import datetime

import msgspec

from app.auth.keys import PREFIX, hash_key
from app.core.errors import ApiKeyExpired, InvalidApiKey, Unauthorized
from app.store.session import fetch_one


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of one request."""

    user_id: int
    user_name: str
    user_email: str
    key_id: int
    key_name: str
    preview: str
    scopes: list[str]
    requests_per_minute: int
    monthly_quota: int | None
    allowed_ips: list[str]
    inactive_ttl_days: int | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    expired: bool
    team_ids: list[int]
    """The caller's teams, the primary one first."""


# Reading and noting the use are one statement, so that a request costs one round trip; the note is written at
# most once a minute, so that a busy key doesn't turn every read into a write.
_AUTHENTICATE = """
WITH noted AS (
    UPDATE api_keys SET last_used_at = now()
    WHERE hash = $1 AND revoked_at IS NULL AND (last_used_at IS NULL OR last_used_at < now() - interval '1 min')
)
SELECT u.id AS user_id, u.name AS user_name, u.email AS user_email,
       k.id AS key_id, k.name AS key_name, k.preview, k.scopes, k.requests_per_minute, k.monthly_quota,
       k.allowed_ips, k.inactive_ttl_days, k.expires_at, k.revoked_at, k.last_used_at,
       coalesce(k.expires_at <= now(), false) AS expired,
       array(SELECT m.team_id FROM memberships m WHERE m.user_id = u.id ORDER BY m.id) AS team_ids
FROM api_keys k JOIN users u ON u.id = k.user_id
WHERE k.hash = $1
"""


async def authenticate(authorization: str | None) -> Principal:
    """Raises `Unauthorized` for a missing or malformed header, `InvalidApiKey` or `ApiKeyExpired` for the key."""
    principal = await fetch_one(Principal, _AUTHENTICATE, hash_key(_bearer_token(authorization)))
    if principal is None or principal.revoked_at is not None:
        raise InvalidApiKey("This API key is unknown or revoked.")
    if principal.expired:
        raise ApiKeyExpired("This API key has expired.")
    return principal


def _bearer_token(authorization: str | None) -> str:
    if authorization is None:
        raise Unauthorized("The Authorization header is missing. Send 'Authorization: Bearer pk_live_…'.")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or " " in token:
        raise Unauthorized("The Authorization header is malformed. Send 'Authorization: Bearer pk_live_…'.")
    if not token.startswith(PREFIX):
        raise InvalidApiKey("This is not an API key of ours.")
    return token
