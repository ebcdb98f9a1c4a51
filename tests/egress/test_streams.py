"""A receiver that never stops sending."""

import asyncio

import httpcore
import pytest

from app.webhooks.egress.streams import BoundedStream

BOUND = 80 * 1024


class Endless(httpcore.AsyncNetworkStream):
    def __init__(self) -> None:
        self.bytes_read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.bytes_read += max_bytes
        return b"x" * max_bytes

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        pass


async def read_all(stream: BoundedStream) -> None:
    while await stream.read(64 * 1024):
        pass


async def test_so_much_is_read_after_each_write() -> None:
    endless = Endless()
    stream = BoundedStream(endless)
    for times in (1, 2):
        await stream.write(b"a request")
        with pytest.raises(httpcore.ReadError, match=r"No answer within 80 KiB\."):
            await read_all(stream)
        assert endless.bytes_read == times * BOUND


async def test_others_have_their_turn_between_reads() -> None:
    turns = 0
    reading = asyncio.create_task(read_all(BoundedStream(Endless())))
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert isinstance(reading.exception(), httpcore.ReadError)
    assert turns >= BOUND / 4096
