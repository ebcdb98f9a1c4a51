"""Links to sign in with: a token for one person, once, for a short time. Only its SHA-256 is stored.

The token stands in the URL's fragment, which browsers send to nobody: no server's log and no Referer has it. The page
there posts it.
"""

import secrets
from datetime import datetime, timedelta

import msgspec

from app.auth.keys import hash_key
from app.core.errors import NotFound
from app.store.session import execute, fetch_exists, fetch_scalar, fetch_value, fetch_values

PAGE = "/console/sign-in"
_MOST = 20
"""Links of one person that can be used; another one takes the place of the oldest."""


class SignInUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Shown once."""

    url: str
    expires_at: datetime


async def make_link(user_id: int, base: str, seconds: float) -> SignInUrl:
    """`base` is the console's origin. Raises `NotFound` for an unknown user."""
    if not await fetch_exists("SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE", user_id):
        raise NotFound("user")
    await execute(
        """
        DELETE FROM sign_in_links WHERE user_id = $1 AND id NOT IN (
            SELECT id FROM sign_in_links WHERE user_id = $1 AND expires_at > now() ORDER BY id DESC LIMIT $2
        )
        """,
        user_id,
        _MOST - 1,
    )
    token = secrets.token_urlsafe(32)
    expires_at = await fetch_scalar(
        datetime,
        """
        INSERT INTO sign_in_links (user_id, token_hash, expires_at)
        VALUES ($1, $2, now() + make_interval(secs => $3)) RETURNING expires_at
        """,
        user_id,
        hash_key(token),
        float(seconds),
    )
    return SignInUrl(url=f"{base}{PAGE}#{token}", expires_at=expires_at)


async def use_link(token: str) -> int | None:
    """The person whose link it is. It is used up, in the current transaction: of two that come at once one waits for the
    other, and finds nothing. None for one that is unknown, used or expired."""
    return await fetch_value(
        int,
        "DELETE FROM sign_in_links WHERE token_hash = $1 AND expires_at > clock_timestamp() RETURNING user_id",
        hash_key(token),
    )


async def delete_expired_links(batch: int, _: timedelta) -> int:
    """How many they were."""
    gone = await fetch_values(
        int,
        """
        DELETE FROM sign_in_links WHERE id IN (
            SELECT id FROM sign_in_links WHERE expires_at <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING id
        """,
        batch,
    )
    return len(gone)
