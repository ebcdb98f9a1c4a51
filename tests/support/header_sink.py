"""An HTTP/2 server that records the headers of its requests, as a proxy before Temporal sees them."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any


async def app(scope: dict[str, Any], _: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Answers every request with 403."""
    if scope["type"] != "http":
        return
    lines = [b": ".join(header) for header in scope["headers"]]
    Path(os.environ["HEADER_SINK"]).write_bytes(b"\n".join(lines))  # noqa: ASYNC240  one small file
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b""})
