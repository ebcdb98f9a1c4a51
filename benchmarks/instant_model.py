"""`python -m benchmarks.instant_model PORT SQL`: a language model that always has the same answer, as OpenAI's chat
completions: at once, or after the time that the question names."""

import asyncio
import json
import re
import sys

from app.local.ports import LOOPBACK

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_WAIT = re.compile(rb"Take (\d+) ms\.")


def taking(question: str, milliseconds: int) -> str:
    """The question, for an answer that takes so long."""
    return f"{question} Take {milliseconds} ms." if milliseconds else question


async def serve(port: int, sql: str) -> None:
    content = json.dumps({"kind": "read", "sql": sql, "refusal": None})
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "instant",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    ).encode()
    answer = (
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + str(len(body)).encode())
        + b"\r\n\r\n"
        + body
    )

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                wait = _WAIT.search(await reader.readexactly(int(length[1]) if length else 0))
                if wait:
                    await asyncio.sleep(int(wait[1]) / 1000)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(on_connection, LOOPBACK, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
