"""One endpoint's circuit: broken when attempt after attempt hangs, tried with one probe at a time until it holds.

Only what holds up others counts: attempts that took seconds and got no answer. A receiver that answers, whatever it
answers, is alive, and the schedule alone decides when it is asked again. Kept in the endpoint's row, so that all
workers know, also after a restart.
"""

from datetime import datetime

from app.core.clock import utc_now
from app.egress.sender import Answer
from app.store.session import fetch

BREAKS_AT = 10
"""Slow failures in a row."""
SLOW_SECONDS = 3.0
PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 60.0
_PROBE_SECONDS = 30.0
"""How long a probe is waited for whose worker died."""
_FRESH_SECONDS = 1.0
"""How often a success is noted of an endpoint where every attempt succeeds."""


def is_broken(slow_failures: int) -> bool:
    return slow_failures >= BREAKS_AT


def is_known_well(slow_failures: int, last_success_at: datetime | None) -> bool:
    """Whether one more success would change nothing: another was noted a moment ago."""
    if slow_failures or last_success_at is None:
        return False
    return 0 <= (utc_now() - last_success_at).total_seconds() < _FRESH_SECONDS


async def take_probe(endpoint: int) -> bool:
    """Whether the caller is the one to try a broken circuit whose time has come."""
    return bool(
        await fetch(
            """
            UPDATE webhook_endpoints SET circuit_until = now() + make_interval(secs => $2)
            WHERE id = $1 AND (circuit_until IS NULL OR circuit_until <= now()) RETURNING id
            """,
            endpoint,
            _PROBE_SECONDS,
        )
    )


async def note(endpoint: int, answer: Answer, *, probing: bool) -> None:
    """Keeps when the endpoint last took something and when it last didn't, and the state of its circuit. In no
    transaction with the attempt's record: a revocation locks in the other order, and nothing of it must be exact."""
    if answer.delivered:
        await fetch(_SUCCESS, endpoint, _FRESH_SECONDS)
    elif answer.code is not None:
        await fetch(_REFUSAL, endpoint)
    elif answer.duration >= SLOW_SECONDS:
        await fetch(_SLOW_FAILURE, endpoint, probing, BREAKS_AT, PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
    else:
        await fetch("UPDATE webhook_endpoints SET last_failure_at = now() WHERE id = $1", endpoint)


_SUCCESS = """
UPDATE webhook_endpoints SET last_success_at = now(), slow_failures = 0, circuit_until = NULL
WHERE id = $1 AND (slow_failures > 0 OR last_success_at IS NULL
                   OR last_success_at < now() - make_interval(secs => $2))
"""
_REFUSAL = """
UPDATE webhook_endpoints SET last_failure_at = now(), slow_failures = 0, circuit_until = NULL WHERE id = $1
"""
# Attempts that were under way when the circuit broke don't lengthen the pause: only its probes do.
_SLOW_FAILURE = """
UPDATE webhook_endpoints SET last_failure_at = now(),
       slow_failures = CASE WHEN slow_failures < $3 OR $2 THEN slow_failures + 1 ELSE slow_failures END,
       circuit_until = CASE WHEN slow_failures + 1 = $3 OR $2
           THEN now() + make_interval(secs => least($4 * 2 ^ least(greatest(slow_failures + 1 - $3, 0), 10), $5))
           ELSE circuit_until END
WHERE id = $1
"""
