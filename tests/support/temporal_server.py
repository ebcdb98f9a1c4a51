"""A Temporal server for tests, apart from `tests.servers`: its client's package takes half a second to import."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from app.local.processes import Command
from app.local.temporal import DYNAMIC_CONFIG, TemporalService, find_program
from tests.servers import running
from tests.support.ports import free_port


@asynccontextmanager
async def running_temporal(folder: Path, **dynamic_config: str) -> AsyncIterator[TemporalService]:
    """A Temporal server that keeps its state in memory."""
    service = _RoomyTemporal(
        "temporal",
        port=free_port(),
        ui_port=free_port(),
        log=folder / "temporal.log",
        program=find_program(),
        database=None,
        dynamic_config=DYNAMIC_CONFIG | dynamic_config,
    )
    async with running(service):
        yield service


class _RoomyTemporal(TemporalService):
    def command(self) -> Command:
        command = super().command()
        # It collects garbage when it has so much memory, not when that has doubled: a fifth less processor time.
        return replace(command, environ={**command.environ, "GOGC": "1600", "GOMEMLIMIT": "700MiB"})
