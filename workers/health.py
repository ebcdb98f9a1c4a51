"""`python -m workers.health --queue control`: whether a worker on this machine has polled these queues recently.

For a container's health check, which runs beside the worker and shares its host name. It asks Temporal, not the
process: a worker that hangs, or polls another Temporal, is alive but does no work.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from app.core.process_exit import run_and_exit
from app.core.settings import InvalidSettings, Settings
from app.core.temporal import connect_from_settings

_FRESH = timedelta(seconds=90)
"""A poll that finds no work is held open for a minute, and only then followed by the next."""
_TIMEOUT_SECONDS = 8


def main() -> int:
    """Returns 0 when all queues are polled from here, else 1 with the reason on standard error."""
    parser = argparse.ArgumentParser(prog="python -m workers.health")
    parser.add_argument("--queue", action="append", required=True, metavar="QUEUE")
    queues: list[str] = parser.parse_args().queue
    try:
        missing = asyncio.run(unserved(Settings.load(os.environ), queues))
    except (InvalidSettings, RPCError, RuntimeError, TimeoutError) as fault:
        sys.stderr.write(f"Temporal can't be asked: {str(fault) or 'no answer in time'}\n")
        return 1
    if missing:
        sys.stderr.write(f"nothing here polls {', '.join(missing)}\n")
    return 1 if missing else 0


async def unserved(
    settings: Settings, queues: Sequence[str], *, host: str | None = None, fresh: timedelta = _FRESH
) -> list[str]:
    """Those of the queues that no worker on `host`, this machine by default, has polled within `fresh`."""
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        client = await connect_from_settings(settings)
        here, oldest = f"@{host or socket.gethostname()}", datetime.now(UTC) - fresh
        return [queue for queue in queues if not await _is_polled(client, queue, here, oldest)]


async def _is_polled(client: Client, queue: str, here: str, oldest: datetime) -> bool:
    description = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            # Every worker of ours polls for activities, even those without workflows.
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
    )
    # The SDK names a worker `pid@host`.
    return any(
        poller.identity.endswith(here) and poller.last_access_time.ToDatetime(tzinfo=UTC) > oldest
        for poller in description.pollers
    )


if __name__ == "__main__":
    run_and_exit(main)
