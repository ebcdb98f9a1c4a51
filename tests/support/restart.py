"""Starting processes again that have ended."""

from collections.abc import Awaitable, Callable

from app.local.processes import ChildProcess
from tests.support.waiting import is_running


async def start_those_that_ended(
    processes: dict[str, ChildProcess], names: tuple[str, ...], start: Callable[[str], Awaitable[None]]
) -> list[str]:
    """Of `processes` those of `names` that have ended are started."""
    stopped = [name for name in names if name not in processes or not is_running(processes[name].pid)]
    for name in stopped:
        if name in processes:
            await processes.pop(name).kill()
        await start(name)
    return stopped
