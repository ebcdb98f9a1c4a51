"""Reading what the processes of a service have logged."""

import json
from pathlib import Path
from typing import Any

from tests.support.service import RunningService
from tests.support.waiting import until

Line = dict[str, Any]


def lines_of(log: Path) -> list[Line]:
    """Every whole line; one that is no JSON object fails."""
    whole, _, _ = log.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.split("\n")] if whole else []


async def line_of(service: RunningService, request_id: str) -> Line:
    """The access line of a request, which may be written after its answer was read."""

    async def look() -> list[Line]:
        found = lines_of(service.folder / "api.log")
        return [line for line in found if line["event"] == "request" and line["request_id"] == request_id]

    (line,) = await until(look)
    return line
