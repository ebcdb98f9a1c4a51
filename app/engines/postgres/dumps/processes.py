"""Running a dump tool: never longer than its caller, with what it says on its standard error bounded."""

import array
import asyncio
import contextlib
import fcntl
import os
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

from app.core import subprocesses
from app.core.subprocesses import DEVNULL, PIPE, Subprocess
from app.core.tracing.spans import span
from app.engines.base import AdminAddress
from app.engines.dumping import CHUNK_BYTES, restrain
from app.engines.tls import TlsMode

_KEPT_BYTES = 16_384
"""The maximum of its messages that is kept: the first of them."""
_STOP_SECONDS = 5
_USUAL_BYTES = 65_536
"""The usual capacity of a pipe."""
_BYTES_A_SECOND = 2**29
"""What a tool writes at most in a second, which shows how long a pipe takes to be full."""
READING = {"effective_io_concurrency": "0"}
"""For sessions that read whole tables, in order: they read by themselves, and the operating system reads ahead. A
server of version 18 has other processes read for them otherwise, which costs several times the reading of what is in
memory, and tenants wait for the same few processes."""
_AS_THEY_ARE = ("TMPDIR", "TZDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")


class OutputPipe:
    """The pipe that a tool writes to. As much is taken from it at once as it holds: the tool writes row by row, and to
    be woken for each row would cost more than what is done with it."""

    def __init__(self) -> None:
        self._fd, self.writing = os.pipe()
        os.set_blocking(self._fd, False)
        self._capacity = _widened(self._fd)
        self._open = True

    async def read(self) -> bytes:
        """The next piece, empty at the end."""
        while True:
            await self._readable()
            held = array.array("i", [0])
            fcntl.ioctl(self._fd, termios.FIONREAD, held)
            if 0 < held[0] < self._capacity // 2:  # nothing is held at the end
                await asyncio.sleep(self._capacity / _BYTES_A_SECOND)
            with contextlib.suppress(BlockingIOError):
                return os.read(self._fd, CHUNK_BYTES)

    def close_writing(self) -> None:
        """Closes our own writing end: the tool has its own."""
        os.close(self.writing)

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._fd)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fd, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)


class ToolProcess:
    """A running tool. `errors` are its messages so far."""

    def __init__(self, process: Subprocess, output: OutputPipe | None = None) -> None:
        """`output` is what it writes to, where that is read."""
        self._process = process
        self._output = output
        self._errors = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @property
    def errors(self) -> str:
        return self._errors.decode(errors="replace")

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def read(self) -> bytes:
        """The next piece of its output, empty at the end."""
        assert self._output is not None
        return await self._output.read()

    async def write(self, piece: bytes) -> None:
        """Writes to the tool's input. Raises `ConnectionError` when the tool takes no more."""
        assert self._process.stdin is not None
        self._process.stdin.write(piece)
        await self._process.stdin.drain()

    async def end_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.close()
            await self._process.stdin.wait_closed()

    async def end(self) -> int:
        """Waits for its end, and returns its status."""
        status = await self._process.wait()
        await asyncio.gather(self._listening, return_exceptions=True)
        return status

    async def stop(self) -> None:
        """Ends it, if it hasn't ended."""
        if self._output is not None:  # else it could wait for a reader
            self._output.close()
        if self.running:
            self._process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._process.wait()
        if self.running:
            self._process.kill()
        await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._process.close()

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(65_536):
            self._errors += piece[: max(0, _KEPT_BYTES - len(self._errors))]


class RunningTool:
    """`async with` starts it, and ends it whatever happens in the block."""

    def __init__(self, program: Path, arguments: list[str], environ: Mapping[str, str], *, reads: bool) -> None:
        self._program = program
        self._arguments = arguments
        self._environ = environ
        self._reads = reads
        self._tool: ToolProcess | None = None
        self._span = span(f"run {program.name}")

    async def __aenter__(self) -> ToolProcess:
        output = None if self._reads else OutputPipe()
        try:
            process = await subprocesses.start(
                str(self._program),
                *self._arguments,
                env=self._environ,
                stdin=PIPE if self._reads else DEVNULL,
                stdout=DEVNULL if output is None else output.writing,
                stderr=PIPE,
                new_session=True,
                limit=CHUNK_BYTES,
            )
        except BaseException:
            if output is not None:
                output.close()
            raise
        finally:
            if output is not None:
                output.close_writing()
        restrain(process.pid)
        # Not every event loop shows the pipe.
        if process.stdin is not None and (pipe := process.stdin.transport.get_extra_info("pipe")) is not None:
            _widened(pipe.fileno())
        self._span.__enter__()
        self._tool = ToolProcess(process, output)
        return self._tool

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._tool is not None
        self._span.__exit__(kind, error, traceback)
        await self._tool.stop()


def _widened(pipe: int) -> int:
    """Widens the pipe to hold a whole chunk, where that is allowed. Returns how many bytes it holds."""
    if sys.platform != "linux":
        return _USUAL_BYTES
    with contextlib.suppress(OSError):  # a user may have only so much of them
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, CHUNK_BYTES)
        return CHUNK_BYTES
    return _USUAL_BYTES


@asynccontextmanager
async def environment(
    address: AdminAddress, *, database: str, user: str, password: str, settings: dict[str, str]
) -> AsyncIterator[dict[str, str]]:
    """What a tool's connection needs, under the host's TLS policy. No password is in an argument or a file."""
    mode = address.tls.mode
    environ = {name: os.environ[name] for name in _AS_THEY_ARE if name in os.environ}
    environ |= {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "PGHOST": address.host,
        "PGPORT": str(address.port),
        "PGUSER": user,
        "PGPASSWORD": password,
        "PGDATABASE": database,
        "PGAPPNAME": "headwater",
        "PGCONNECT_TIMEOUT": "10",
        "PGCLIENTENCODING": "UTF8",
        # A proof of the password is all that is ever sent.
        "PGREQUIREAUTH": "none,md5,scram-sha-256",
        "PGPASSFILE": os.devnull,
        "PGSERVICEFILE": os.devnull,
        "PGGSSENCMODE": "disable",
        "PGSSLMODE": mode.value,
        "PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in (READING | settings).items()),
    }
    with contextlib.ExitStack() as files:
        if address.tls.ca is not None and mode in (TlsMode.REQUIRE, TlsMode.VERIFY_FULL):
            # As with libpq, a given authority is checked in `require` too.
            file = files.enter_context(tempfile.NamedTemporaryFile("w", prefix="headwater-ca-", suffix=".pem"))
            file.write(address.tls.ca)
            file.flush()
            environ["PGSSLROOTCERT"] = file.name
            environ["PGSSLMODE"] = "verify-ca" if mode is TlsMode.REQUIRE else mode.value
        elif mode is TlsMode.VERIFY_FULL:
            environ["PGSSLROOTCERT"] = "system"
        yield environ
