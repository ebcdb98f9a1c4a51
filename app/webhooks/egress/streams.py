"""What is read of a receiver's answer: no more than a limit, and a little at a time.

httpcore reads 64 KiB at once and goes on to the next event without giving way. Thousands of interim responses, or of
chunks of one octet, would keep everything else in this process waiting, and without an end.
"""

import asyncio
from typing import Any

import httpcore
from httpcore import AsyncNetworkStream

CONTENT_BYTES = 16 * 1024
"""How much of an answer's content is read: enough that the connection of a usual one can serve again."""
_ANSWER_BYTES = CONTENT_BYTES + 64 * 1024
"""The same with interim responses, the head and what chunks add."""
_AT_ONCE_BYTES = 4 * 1024


class AnswerTooLong(httpcore.ReadError):
    """Says in a sentence that the answer is too long, for those whose receiver it is."""


class BoundedStream(AsyncNetworkStream):
    """A connection, encrypted or not yet. After what was written last it reads `_ANSWER_BYTES`, and then raises
    `AnswerTooLong`; others have their turn between two reads."""

    def __init__(self, stream: AsyncNetworkStream) -> None:
        self._stream = stream
        self._bytes_read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._bytes_read >= _ANSWER_BYTES:
            raise AnswerTooLong(f"No answer within {_ANSWER_BYTES // 1024} KiB.")
        if self._bytes_read:
            await asyncio.sleep(0)
        most = min(max_bytes, _AT_ONCE_BYTES, _ANSWER_BYTES - self._bytes_read)
        octets = await self._stream.read(most, timeout)
        self._bytes_read += len(octets)
        return octets

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._bytes_read = 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
