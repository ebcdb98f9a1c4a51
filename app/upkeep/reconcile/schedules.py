"""Whether Temporal runs the scheduled work: if a Schedule is paused or missing, nothing else reports it."""

from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from app.contracts.upkeep import ScheduleId
from app.core.settings import Settings
from app.core.temporal import connect_from_settings
from app.upkeep.reconcile.findings import Violation

MISSING = "schedule_missing"
PAUSED = "schedule_paused"
UNREACHABLE = "temporal_unreachable"
_RPC_TIMEOUT = timedelta(seconds=5)


async def check_schedules(client: Client) -> list[Violation]:
    """Raises `RPCError` when Temporal can't be reached."""
    found = [await _check_schedule(client, schedule) for schedule in ScheduleId]
    return [violation for violation in found if violation is not None]


async def check_schedules_at(settings: Settings) -> list[Violation]:
    """Like `check_schedules`, with a violation when Temporal can't be reached."""
    try:
        return await check_schedules(await connect_from_settings(settings))
    except (RPCError, RuntimeError, OSError) as error:
        return [Violation(rule=UNREACHABLE, subject=settings.temporal_address, detail=str(error).splitlines()[0])]


async def _check_schedule(client: Client, schedule: ScheduleId) -> Violation | None:
    try:
        description = await client.get_schedule_handle(schedule.value).describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        detail = "is not in Temporal; a control worker makes it within five minutes"
        return Violation(rule=MISSING, subject=schedule.value, detail=detail)
    state = description.schedule.state
    if not state.paused:
        return None
    note = f": {state.note}" if state.note else ""
    return Violation(rule=PAUSED, subject=schedule.value, detail=f"is paused in Temporal, and nothing runs it{note}")
