"""A Temporal server whose clock jumps to the next timer whenever it is idle."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from app.core.temporal import DATA_CONVERTER
from app.local.temporal import find_program


@asynccontextmanager
async def time_skipping() -> AsyncIterator[Client]:
    """Its client, for the block."""
    async with await WorkflowEnvironment.start_time_skipping_v2(
        data_converter=DATA_CONVERTER,
        dev_server_existing_path=str(find_program()),
        dev_server_startup_timeout=timedelta(seconds=60),
        dev_server_extra_args=["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"],
    ) as environment:
        yield environment.client
