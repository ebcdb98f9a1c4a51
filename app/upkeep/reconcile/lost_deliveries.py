"""Recovering deliveries that nothing would send: those that an earlier version's worker didn't come to, and those whose
endpoint doesn't say when it is due. A webhook worker makes their attempts."""

from datetime import timedelta

from app.upkeep.reconcile.restarts import RESTART_AFTER
from app.webhooks import waiting

_MAX = 200
"""The maximum in one run."""


async def recover_deliveries(patience: timedelta = RESTART_AFTER) -> list[str]:
    """Takes over deliveries that have been due to no endpoint for longer than `patience`. Returns a sentence for
    each."""
    forgotten = [f"Woke endpoint {endpoint}: nothing said when." for endpoint in await waiting.wake_forgotten()]
    return forgotten + [
        f"Took up delivery {one.id} to endpoint {one.endpoint_id}: nothing was at it any more."
        for one in await waiting.take_over_lost(patience, _MAX)
    ]
