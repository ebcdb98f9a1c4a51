"""Clients that stay connected and say nothing more shut nobody out."""

import asyncio
from contextlib import AsyncExitStack

from tests.support.service import RunningService
from tests.support.waiting import LIMIT_SECONDS

_IDLE = 300


async def test_idle_connections_leave_room(service: RunningService) -> None:
    host, port = service.http.base_url.host, service.http.base_url.port
    async with AsyncExitStack() as stack:
        for _ in range(_IDLE):
            reader, writer = await asyncio.open_connection(host, port)
            stack.callback(writer.close)
            writer.write(f"GET /health/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert b"200" in await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
        answer = await service.http.get("/health/live", timeout=LIMIT_SECONDS)
        assert answer.status_code == 200
