"""The consistency check, asked for: the scheduled run, now. There is one at a time, and workers make it."""

from datetime import timedelta

from temporalio.client import Client, ScheduleOverlapPolicy
from temporalio.service import RPCError

from app.contracts.upkeep import ScheduleId
from app.core.errors import ServiceUnavailable

_RPC_TIMEOUT = timedelta(seconds=3)


async def run_check(client: Client) -> None:
    """Starts it, unless one is under way. Raises `ServiceUnavailable` when Temporal can't be reached, or doesn't have
    the Schedule yet."""
    try:
        schedule = client.get_schedule_handle(ScheduleId.RECONCILE.value)
        await schedule.trigger(overlap=ScheduleOverlapPolicy.SKIP, rpc_timeout=_RPC_TIMEOUT)
    except (RPCError, RuntimeError, OSError):
        raise ServiceUnavailable("Temporal can't be reached just now, so no check was started.") from None
