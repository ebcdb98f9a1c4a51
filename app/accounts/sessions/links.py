"""Links to sign in with: a token for one person, once, for a short time. Only its SHA-256 is stored.

The token stands in the URL's fragment, which browsers send to nobody: no server's log and no Referer has it. The page
there posts it.
"""

import secrets
from datetime import datetime, timedelta

import msgspec

from app.auth.keys import hash_key
from app.auth.users import lock_person
from app.core.settings import Settings
from app.store.session import execute, fetch_scalar, fetch_value, fetch_values

PAGE = "/console/sign-in"
_MOST = 20
"""Links of one person that can be used; another one takes the place of the oldest."""


class SignInUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Shown once."""

    url: str
    expires_at: datetime


def console_url(settings: Settings) -> str:
    """The console's origin, as a browser on this machine reaches it unless the setting says otherwise. By the name
    `localhost` in place of its address: passkeys belong to names."""
    url = settings.public_url or f"http://{settings.api_host}:{settings.api_port}"
    scheme, host = url.split("://", 1)
    name, colon, port = host.rpartition(":")
    if scheme == "http" and name in ("127.0.0.1", "[::1]", "::1", "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return f"{scheme}://localhost{colon}{port}"
    return url


async def make_link(user_id: int, base: str, seconds: float) -> SignInUrl:
    """`base` is the console's origin. Raises `NotFound` for an unknown user."""
    await lock_person(user_id)
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
    """The person whose link it is, locked. The link is used up, in the current transaction: of two requests at once one
    waits for the other, and finds nothing. None for a link that is unknown, used or expired."""
    hashed = hash_key(token)
    user_id = await fetch_value(int, "SELECT user_id FROM sign_in_links WHERE token_hash = $1", hashed)
    if user_id is None:
        return None
    # The person is locked first, as in `make_link`.
    await lock_person(user_id)
    return await fetch_value(
        int,
        "DELETE FROM sign_in_links WHERE token_hash = $1 AND expires_at > clock_timestamp() RETURNING user_id",
        hashed,
    )


async def delete_expired_links(batch: int, _: timedelta) -> int:
    """Deletes expired links; returns how many."""
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
