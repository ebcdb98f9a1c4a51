"""A server for OpenAI's chat completions over real HTTP, which does what the question says.

A question that is a JSON list is a script: its first item answers the first turn, and so on. So the server has no
state, and any number of API processes may use it.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.local.ports import LOOPBACK
from tests.support.ports import free_port

MODEL = "scripted-model"
KEY = "scripted-key"
_REQUEST = re.compile(r"--- request (\w+)\n(.*)\n--- end of request \1", re.DOTALL)
_STATUS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many", 500: "Error"}


@dataclass
class ModelServer:
    """`seen` are the bodies of all requests."""

    url: str
    seen: list[dict[str, Any]] = field(default_factory=list)
    forms: set[str] = field(default_factory=lambda: {"json_schema", "json_object", "none"})
    """The response formats that it accepts; others are refused with 400."""
    forced: dict[str, Any] | None = None
    """A turn that answers every request, for what doesn't fit into a question."""
    sent: int = 0
    """Bytes of `flood` that were read."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, turns that are `held` are not answered."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a process that uses this server."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": KEY}


def script(*turns: Any) -> str:
    """A question that produces these turns. A turn is `sql(…)`, `says(…)`, or a dict with `status`, `delay`, `held`,
    `close`, `raw` (a whole response in bytes), `flood` (an endless body)."""
    return json.dumps(list(turns))


def sql(text: str, kind: str | None = "read") -> dict[str, Any]:
    return {"content": json.dumps({"kind": kind, "sql": text, "refusal": None})}


def says(text: str | None) -> dict[str, Any]:
    """A turn with this text."""
    return {"content": text}


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    port = free_port()
    made = ModelServer(f"http://{LOOPBACK}:{port}/v1")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _serve_one(made, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, port)
    try:
        yield made
    finally:
        server.close()


async def _serve_one(server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]  # always given
    body = json.loads(await reader.readexactly(length))
    server.seen.append(
        {**body, "head": head, "authorization": re.search(r"authorization: (.*?)\r", head, re.IGNORECASE)}
    )
    turn = server.forced or _turn(body)
    await asyncio.sleep(turn.get("delay", 0))
    if turn.get("held"):
        await server.released.wait()
    if turn.get("close"):
        return False
    if "raw" in turn:
        writer.write(turn["raw"])
        await writer.drain()
        return False
    while "flood" in turn:
        writer.write(turn["flood"])
        await writer.drain()
        server.sent += len(turn["flood"])
    form = body.get("response_format", {}).get("type", "none")
    status = turn.get("status", 200) if form in server.forms else 400
    answer = (
        turn["answer"] if "answer" in turn else _completion(turn) if status == 200 else {"error": {"message": "no"}}
    )
    octets = json.dumps(answer).encode()
    writer.write(
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(octets)}\r\n\r\n".encode()
        + octets
    )
    await writer.drain()
    return True


def _turn(body: dict[str, Any]) -> dict[str, Any]:
    asked = _REQUEST.search(body["messages"][1]["content"])
    try:
        turns = json.loads(asked[2]) if asked else None
    except ValueError:
        turns = None
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, dict) for turn in turns):
        return sql("SELECT 1 AS answer")
    taken = sum(message["role"] == "assistant" for message in body["messages"])
    turn: dict[str, Any] = turns[min(taken, len(turns) - 1)]
    return turn


def _completion(turn: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": turn.get("content"), "refusal": turn.get("refusal")}
    return {
        "id": "completion-1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
