"""Requests that wait for the end of what they ask for. On a machine with other work that may take longer than any
answer waits."""

from datetime import timedelta
from typing import Any

import httpx

from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.waiting import until

_SECONDS = 60
WAIT = {"wait": "true", "timeout": str(_SECONDS)}


async def waited(caller: Caller, answer: httpx.Response, path: str, *, status: int = 201) -> dict[str, Any]:
    """The body of an answer to a request with `WAIT`, which has this status, or what it would have said later. `path`
    is of what its data describes, without the uuid."""
    if not waited_in_vain(answer):
        return body_of(answer, status)
    body = body_of(answer, 202)
    operation = await ended(caller, body["operation"]["uuid"])
    return {**body, "operation": operation, "data": data_of(await caller.get(f"{path}/{body['data']['uuid']}"))}


def waited_in_vain(answer: httpx.Response) -> bool:
    """A 202 that comes before the time is over is none."""
    return answer.status_code == 202 and answer.elapsed >= timedelta(seconds=_SECONDS)


async def ended(caller: Caller, operation: str) -> dict[str, Any]:
    """The operation at its end."""

    async def look() -> dict[str, Any] | None:
        seen: dict[str, Any] = data_of(await caller.get(f"/operations/{operation}"))
        return seen if seen["finished_at"] else None

    seen: dict[str, Any] | None = await until(look)
    assert seen is not None, "it was waited for"
    return seen
