"""Workflows as they must not be: the guards are tried on them."""

import random
import socket
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from temporalio import workflow

from app.contracts.control import ControlActivities
from app.contracts.databases import ApplyLimits, ApplyLimitsInput
from app.contracts.engine import EngineActivities
from workflows import policies

DEEDS: dict[str, Any] = {
    "clock": lambda: datetime.now(),
    "sleep": lambda: time.sleep(0),
    "chance": lambda: random.random(),
    "network": lambda: socket.socket(),
    "file": lambda: Path("/dev/null").read_text(),
}


@workflow.defn
class Wayward:
    """Does one thing that workflows must not."""

    @workflow.run
    async def run(self, deed: str) -> None:
        DEEDS[deed]()


@workflow.defn(name="ApplyLimits")
class Changed(ApplyLimits):
    """Records before it applies: the order is another than the recorded one."""

    @workflow.run
    async def run(self, request: ApplyLimitsInput) -> None:
        await workflow.execute_activity_method(
            ControlActivities.record_destroyed, request.database, **policies.control("record")
        )
        await workflow.execute_activity_method(
            EngineActivities.apply_limits,
            request.database,
            **policies.engine(request.region, 0, "apply", urgent=True),
        )
