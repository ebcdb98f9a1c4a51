"""`python -m benchmarks.instant_model PORT SQL`: a language model that always gives the same answer, as OpenAI's
chat completions: immediately, or after the time in the question. It reports how long it took, including late timers."""

import asyncio
import json
import re
import sys
import time

from app.local.ports import LOOPBACK
from benchmarks.lean_http import LeanConnection, content_length

TOOK = "/took"
"""The path that returns the seconds of all answers since it was last called."""
_WAIT = re.compile(rb"Take (\d+) ms\.")


def taking(question: str, milliseconds: int) -> str:
    """The question, for an answer that takes this long."""
    return f"{question} Take {milliseconds} ms." if milliseconds else question


def took(model: LeanConnection) -> float:
    """The seconds that the model has spent since the last call."""
    _, reported = model.exchange(model.request("GET", TOOK, {}))
    return float(reported)


class _Spent:
    seconds = 0.0


class _Connection(asyncio.Protocol):
    """Its time is measured from the complete request to the sent answer."""

    def __init__(self, answer: bytes, spent: _Spent) -> None:
        self._answer = answer
        self._spent = spent
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        came = time.perf_counter()
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or len(body) < content_length(head):
            return
        self._received = b""
        if head.startswith(f"GET {TOOK} ".encode()):
            spent, self._spent.seconds = self._spent.seconds, 0.0
            self._transport.write(_response(str(spent).encode()))
            return
        wait = _WAIT.search(body)
        if wait:
            asyncio.get_running_loop().call_later(int(wait[1]) / 1000, self._give, came)
        else:
            self._give(came)

    def _give(self, came: float) -> None:
        self._spent.seconds += time.perf_counter() - came
        self._transport.write(self._answer)


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _completion(sql: str) -> bytes:
    content = json.dumps({"kind": "read", "sql": sql, "refusal": None})
    return json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "instant",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    ).encode()


async def serve(port: int, sql: str) -> None:
    answer, spent = _response(_completion(sql)), _Spent()
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(answer, spent), LOOPBACK, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
