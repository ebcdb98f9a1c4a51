"""A month turns on a Temporal server that skips time, over the real workflow, our own database and a real host."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any
from uuid import UUID, uuid4

import msgspec
from temporalio.client import Client

from app.contracts.base import DatabaseStatus, PauseReason
from app.contracts.queues import CONTROL_QUEUE, engine_queue
from app.core.settings import Settings
from app.quotas.usage import month_of
from app.store.session import fetch
from tests.cli.command import Headwater
from tests.quotas.bench import REGION, Bench, bench
from tests.quotas.tenant_session import refused
from tests.servers import RunningServer
from tests.support.patient_worker import patient
from tests.support.time_skipping import time_skipping
from tests.support.worker_dependencies import tools
from tests.usage.histories import begin, set_clock
from tests.usage.ledger_model import PERIOD, Key, Sums
from tests.usage.test_ledger import stored_ledger
from tests.usage.test_report import SUMS
from tests.workflows.stage import Handle, run_wholly
from workers.runner import build_worker
from workflows.close_usage import CloseUsageWorkflow
from workflows.enforce_quotas import EnforceQuotasWorkflow

HOUR = timedelta(hours=1)
LATER = timedelta(days=40)
HOURS = 100


@asynccontextmanager
async def _served(on_bench: Bench) -> AsyncIterator[Client]:
    """By the workers that are: without their heartbeats, a measurement of three seconds would be taken for lost."""
    its = msgspec.structs.replace(
        tools(Settings(usage_period_seconds=PERIOD)), box=on_bench.box, adapters=on_bench.adapters
    )
    async with (
        time_skipping() as client,
        patient(build_worker(client, CONTROL_QUEUE, its)),
        patient(build_worker(client, engine_queue(REGION), its)),
    ):
        yield client


class Clocks:
    """Temporal's and that of the meters, which go together: both skip the same time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.began = self.now = datetime.now(UTC).replace(microsecond=0)

    async def run(self, workflow: type[EnforceQuotasWorkflow | CloseUsageWorkflow], *, later: timedelta) -> None:
        """That much later."""
        self.now += later
        await set_clock(int(self.now.timestamp()))
        # What a stall leaves to another run follows at once.
        delays = chain([later], repeat(timedelta(0)))

        async def start() -> Handle:
            return await self._client.start_workflow(
                workflow.run, id=str(uuid4()), task_queue=CONTROL_QUEUE, start_delay=next(delays)
            )

        await run_wholly(start, REGION)


def _seconds_of(ledger: dict[Key, Sums], made: dict[str, Any]) -> timedelta:
    """In which it was active."""
    return timedelta(seconds=sum(sums[0] for (uuid, _), sums in ledger.items() if uuid == UUID(made["uuid"])))


async def _sums_by(headwater: Headwater, group_by: str, clocks: Clocks) -> dict[str, int]:
    """Of all that `headwater usage` reports of the closed periods, by months."""
    span = ("--from", clocks.began.date().isoformat(), "--to", clocks.now.strftime("%Y-%m-%dT%H:00:00Z"))
    lines = await headwater.json("usage", "--group-by", group_by, "--granularity", "month", *span)
    assert len({line["starts_at"][:7] for line in lines}) > 1, "a month has turned"
    return {name: sum(int(line[name]) for line in lines) for name in SUMS}


async def test_what_ran_out_of_hours_comes_back_when_the_month_turns(
    control_dsn: str, control_admin_dsn: str, postgres_server: RunningServer
) -> None:
    async with bench(control_dsn, postgres_server) as on_bench, _served(on_bench) as client:
        clocks = Clocks(client)
        await begin(control_admin_dsn, int(clocks.now.timestamp()))
        made, other = await on_bench.create(tier="free"), await on_bench.create(tier="pro")

        await clocks.run(EnforceQuotasWorkflow, later=HOUR)
        ran_out = (
            "UPDATE database_usage SET runtime_seconds = $1 FROM databases d WHERE d.id = database_id AND d.uuid = $2"
        )
        await fetch(ran_out, HOURS * 3600.0, UUID(made["uuid"]))
        await clocks.run(EnforceQuotasWorkflow, later=HOUR)
        paused = await on_bench.follow(made)
        assert (paused.status, paused.paused_reason) == (DatabaseStatus.PAUSED, PauseReason.RUNTIME)
        assert await refused(made)
        await clocks.run(EnforceQuotasWorkflow, later=LATER)
        assert (await on_bench.follow(made)).status is DatabaseStatus.ACTIVE
        assert not await refused(made)
        used = await on_bench.usage(made)
        assert (used["runtime_seconds"], used["runtime_month"]) == (0, month_of(clocks.now))

        await clocks.run(CloseUsageWorkflow, later=HOUR)
        ledger = await stored_ledger()
        closed = clocks.now.replace(minute=0, second=0)
        assert _seconds_of(ledger, made) == 2 * HOUR + (closed - (clocks.now - HOUR))
        assert _seconds_of(ledger, other) == closed - clocks.began
        in_all = {name: sum(sums[place] for sums in ledger.values()) for place, name in enumerate(SUMS)}
        headwater = Headwater({"CONTROL_DSN": on_bench.api.control_dsn})
        for group_by in ("database", "team"):
            assert await _sums_by(headwater, group_by, clocks) == in_all
