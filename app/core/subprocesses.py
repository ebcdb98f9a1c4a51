"""Starting programs from a process that may have much memory.

The event loop of our servers forks for each program: it copies the page tables of all memory while nothing else runs,
14 ms for 240 MB, and memory that is written next is copied too. `subprocess` lends the memory to the program until the
program has begun.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL
_LIMIT = 2**16
_MOST_BYTES = 2**16


class Subprocess:
    """A program that was started. The caller waits for its end, and then closes it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._transports: list[asyncio.BaseTransport] = []
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        """Each of the three is None unless `PIPE` was asked for."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; minus the number of the signal that ended it."""
        return self._process.poll()

    async def wait(self) -> int:
        """Returns the code when it has ended."""
        return self._process.wait() if self.returncode is not None else await _ended(self._process)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """Does nothing to a program that has ended."""
        self._process.kill()

    def close(self) -> None:
        """Closes the program's pipes, with what is still in them."""
        for transport in self._transports:
            transport.close()

    async def connect(self, limit: int) -> None:
        if (pipe := self._process.stdin) is not None:
            self.stdin = await self._writer(pipe)
        if (pipe := self._process.stdout) is not None:
            self.stdout = await self._reader(pipe, limit)
        if (pipe := self._process.stderr) is not None:
            self.stderr = await self._reader(pipe, limit)

    async def _reader(self, pipe: IO[bytes], limit: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._transports.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        # Nothing is read, but only this protocol says when its transport is closed.
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


async def start(
    program: str,
    *arguments: str,
    env: Mapping[str, str],
    stdin: int = DEVNULL,
    stdout: int = PIPE,
    stderr: int = DEVNULL,
    cwd: str | None = None,
    new_session: bool = False,
    limit: int = _LIMIT,
) -> Subprocess:
    """Starts the program, with `PIPE`, `DEVNULL` or a file's number for each of the three standard streams. About
    `limit` bytes of what it writes are in memory at once. Raises `OSError` where it can't be run."""
    process = subprocess.Popen(  # noqa: ASYNC220 - takes a fraction of a millisecond
        [program, *arguments],
        env=dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        start_new_session=new_session,
        bufsize=0,
    )
    started = Subprocess(process)
    try:
        await started.connect(limit)
    except BaseException:
        process.kill()
        process.wait()
        started.close()
        raise
    return started


async def output_of(program: str, *arguments: str, env: Mapping[str, str], seconds: float) -> str | None:
    """What the program writes, 64 KiB of it at least; None where it can't be run, or doesn't end in time."""
    try:
        process = await start(program, *arguments, env=env)
    except OSError:
        return None
    try:
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            written = b""
            while len(written) < _MOST_BYTES and (piece := await process.stdout.read(_MOST_BYTES)):
                written += piece
            await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process.close()
    return written.decode(errors="replace")


async def _ended(process: "subprocess.Popen[bytes]") -> int:
    if sys.platform != "linux":
        return await asyncio.to_thread(process.wait)
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # the kernel has none, or another waiter has been told of the end
        return await asyncio.to_thread(process.wait)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()
