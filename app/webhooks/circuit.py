"""One endpoint's circuit: broken when attempt after attempt hangs, tried with one probe at a time until it holds.

Only what holds up others counts: attempts that took seconds and got no answer. A receiver that answers, whatever it
answers, is alive, and the schedule alone decides when it is asked again. Stored in the endpoint's row, so that all
workers know, also after a restart. A probe is the attempt of a delivery that waits (`app.webhooks.waiting`).
"""

from datetime import datetime

from app.core.clock import utc_now
from app.core.settings import Settings
from app.store.session import execute
from app.webhooks.egress.sender import AttemptResult

BREAKS_AT = 10
"""Slow failures in a row."""
_SLOW_SECONDS = 3.0
_FRESH_SECONDS = 1.0
"""How often a success is noted of an endpoint where every attempt succeeds."""


def is_broken(slow_failures: int) -> bool:
    return slow_failures >= BREAKS_AT


def is_known_well(slow_failures: int, last_success_at: datetime | None) -> bool:
    """Whether one more success would change nothing: another was noted a moment ago."""
    if slow_failures or last_success_at is None:
        return False
    return 0 <= (utc_now() - last_success_at).total_seconds() < _FRESH_SECONDS


class Circuit:
    """The rules of circuits, by the settings of this process: what counts as slow, and the pauses between probes."""

    def __init__(self, settings: Settings) -> None:
        # Where attempts have less time than that altogether, one that used all of it was slow.
        self._slow = min(_SLOW_SECONDS, settings.webhook_timeout_seconds / 2)
        self._pause, self._longest = settings.webhook_probe_seconds, settings.webhook_longest_probe_seconds

    async def note(self, endpoint: int, answer: AttemptResult, *, probing: bool) -> None:
        """Records when the endpoint last took something and when it last didn't, and the state of its circuit. Within a
        transaction it comes before what concerns a delivery: a revocation locks in that order. A probe that gets no
        answer has failed, however quickly."""
        if answer.delivered:
            await execute(_SUCCESS, endpoint, _FRESH_SECONDS)
        elif answer.code is not None:
            await execute(_REFUSAL, endpoint)
        elif answer.duration >= self._slow or probing:
            await execute(_SLOW_FAILURE, endpoint, probing, BREAKS_AT, self._pause, self._longest)
        else:
            await execute("UPDATE webhook_endpoints SET last_failure_at = now() WHERE id = $1", endpoint)


# With the end of `circuit_until`, what waits is due immediately.
_SUCCESS = """
UPDATE webhook_endpoints SET last_success_at = now(), slow_failures = 0, circuit_until = NULL,
       next_attempt_at = CASE WHEN circuit_until IS NOT NULL AND next_attempt_at > now() THEN now()
                              ELSE next_attempt_at END
WHERE id = $1 AND (slow_failures > 0 OR last_success_at IS NULL
                   OR last_success_at < now() - make_interval(secs => $2))
"""
_REFUSAL = """
UPDATE webhook_endpoints SET last_failure_at = now(), slow_failures = 0, circuit_until = NULL,
       next_attempt_at = CASE WHEN circuit_until IS NOT NULL AND next_attempt_at > now() THEN now()
                              ELSE next_attempt_at END
WHERE id = $1
"""
# Attempts that were under way when the circuit broke don't lengthen the pause: only its probes do. Each pause is up
# to two fifths more or less, so that endpoints that broke together are soon probed evenly over time.
_SLOW_FAILURE = """
UPDATE webhook_endpoints SET last_failure_at = now(),
       slow_failures = CASE WHEN slow_failures < $3 OR $2 THEN slow_failures + 1 ELSE slow_failures END,
       circuit_until = CASE WHEN slow_failures + 1 = $3 OR $2
           THEN now() + make_interval(secs => (0.6 + 0.8 * random())
                                              * least($4 * 3 ^ least(greatest(slow_failures + 1 - $3, 0), 20), $5))
           ELSE circuit_until END
WHERE id = $1
"""
