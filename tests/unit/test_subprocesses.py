"""Programs that are started, on the event loop of the tests and on that of our servers."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import psutil
import pytest
import uvloop

from app.core import subprocesses
from app.core.subprocesses import PIPE

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]
Result = TypeVar("Result")

forks: list[int] = []
os.register_at_fork(before=lambda: forks.append(1))


def run(loop: Loop, work: Callable[[], Awaitable[Result]]) -> Result:
    """On a loop of its own, in a thread: the tests' own runs in this one."""

    async def main() -> Result:
        return await work()

    def in_thread() -> Result:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(main())

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(in_thread).result()


@LOOPS
def test_what_it_is_given_and_what_it_writes(loop: Loop) -> None:
    sent = os.urandom(2**20)

    async def echoed() -> tuple[bytes, int]:
        process = await subprocesses.start("/bin/cat", env={}, stdin=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.returncode is None
        reading = asyncio.create_task(process.stdout.read())
        process.stdin.write(sent)
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()
        code = await process.wait()
        written = await reading
        process.close()
        return written, code

    assert run(loop, echoed) == (sent, 0)


@LOOPS
def test_several_wait_for_the_end(loop: Loop) -> None:
    async def ended() -> list[int]:
        process = await subprocesses.start("/bin/sleep", "600", env={})
        waiting = [asyncio.create_task(process.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        process.kill()
        codes = [*await asyncio.gather(*waiting), await process.wait()]
        process.kill()
        process.close()
        return codes

    assert run(loop, ended) == [-9] * 4


@LOOPS
def test_one_that_reads_no_more(loop: Loop) -> None:
    async def write_on(stdin: asyncio.StreamWriter) -> None:
        while True:
            stdin.write(b"x" * 2**16)
            await stdin.drain()

    async def written_to() -> None:
        process = await subprocesses.start("/bin/true", env={}, stdin=PIPE)
        assert process.stdin is not None
        try:
            with pytest.raises(ConnectionError):
                await write_on(process.stdin)
        finally:
            await process.wait()
            process.close()

    run(loop, written_to)


@LOOPS
def test_its_output_alone(loop: Loop) -> None:
    async def outputs() -> list[str | None]:
        return [
            await subprocesses.output_of("/bin/sh", "-c", "echo one; sleep 0.01; echo two", env={}, seconds=60),
            await subprocesses.output_of("/bin/cat", "/dev/zero", env={}, seconds=0.1),
            await subprocesses.output_of("/nonexistent/program", env={}, seconds=60),
            await subprocesses.output_of("/bin/sleep", "600", env={}, seconds=0.01),
        ]

    assert run(loop, outputs) == ["one\ntwo\n", None, None, None]
    assert not {"sleep", "cat"} & {child.name() for child in psutil.Process().children()}


def test_the_memory_of_a_server_is_not_copied() -> None:
    """As the loop of the servers does it by itself."""

    async def start() -> None:
        process = await subprocesses.start("/bin/true", env={})
        await process.wait()
        process.close()

    async def as_the_loop_does() -> None:
        await (await asyncio.create_subprocess_exec("/bin/true")).wait()

    forks.clear()
    run(uvloop.new_event_loop, start)
    assert not forks
    run(uvloop.new_event_loop, as_the_loop_does)
    assert forks
