"""How often one address tries to sign in."""

from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network

from app.auth.client_address import parse_address
from app.core.clock import utc_now
from app.core.errors import RateLimitExceeded
from app.store.session import execute, fetch_value

PER_MINUTE = 300
_COUNT = """
INSERT INTO sign_in_attempts AS a (network, minute, attempts) VALUES ($1, date_trunc('minute', now()), 1)
ON CONFLICT (network, minute) DO UPDATE SET attempts = a.attempts + 1 WHERE a.attempts < $2
RETURNING attempts
"""
_DELETE = """
DELETE FROM sign_in_attempts WHERE id IN (
    SELECT id FROM sign_in_attempts WHERE minute < now() - interval '5 minutes' ORDER BY id LIMIT $1
    FOR UPDATE SKIP LOCKED
)
"""


async def count_attempt(address: str, per_minute: int = PER_MINUTE) -> None:
    """Counts one more attempt in this minute of the clock, for all processes together. Addresses of one IPv6 network of
    64 bits count as one: they belong to one subscriber. An attempt that is refused writes nothing. Raises
    `RateLimitExceeded`."""
    if await fetch_value(int, _COUNT, network_of(address), per_minute) is None:
        raise RateLimitExceeded(per_minute, max(1, 60 - utc_now().second), "To sign in, an address")


def network_of(address: str) -> str:
    """The network whose attempts are counted together: an IPv4 address, or 64 bits of an IPv6 address."""
    parsed = parse_address(address)
    return str(IPv6Network((parsed, 64), strict=False) if isinstance(parsed, IPv6Address) else parsed)


async def delete_old_attempts(most: int, _age: timedelta) -> int:
    """Deletes the counts of minutes that began more than five minutes ago. See `app.upkeep.sweep`."""
    return await execute(_DELETE, most)
