"""Running a dump tool: never longer than its caller, with what it says on its standard error bounded."""

import asyncio
import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

from app.core.tracing.spans import span
from app.engines.base import AdminAddress
from app.engines.dumping import CHUNK_BYTES, restrain
from app.engines.tls import TlsMode

_KEPT_BYTES = 16_384
"""The maximum of its messages that is kept: the first of them."""
_STOP_SECONDS = 5
_AS_THEY_ARE = ("TMPDIR", "TZDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")


class ToolProcess:
    """A running tool. `errors` are its messages so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
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
        assert self._process.stdout is not None
        return await self._process.stdout.read(CHUNK_BYTES)

    async def write(self, piece: bytes) -> None:
        """Raises `ConnectionError` when it takes no more."""
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
        with contextlib.suppress(ProcessLookupError):
            if self.running:
                self._process.terminate()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_STOP_SECONDS):
                        await self._drained()
            if self.running:
                self._process.kill()
        await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _drained(self) -> None:
        """Its end, however full its pipe is."""
        while self._process.stdout is not None and await self._process.stdout.read(CHUNK_BYTES):
            pass
        await self._process.wait()

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
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            str(self._program),
            *self._arguments,
            stdin=pipe if self._reads else null,
            stdout=null if self._reads else pipe,
            stderr=pipe,
            env=dict(self._environ),
            limit=CHUNK_BYTES,
            start_new_session=True,
        )
        restrain(process.pid)
        _widen(process)
        self._span.__enter__()
        self._tool = ToolProcess(process)
        return self._tool

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._tool is not None
        self._span.__exit__(kind, error, traceback)
        await self._tool.stop()


def _widen(process: asyncio.subprocess.Process) -> None:
    """Its pipes, to whole chunks."""
    if sys.platform != "linux":
        return
    for stream in (process.stdin, process.stdout):
        pipe = None if stream is None else stream._transport.get_extra_info("pipe")  # type: ignore[union-attr]
        if pipe is not None:
            with contextlib.suppress(OSError):  # a user may have only so much of them
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, CHUNK_BYTES)


@asynccontextmanager
async def environment(
    address: AdminAddress, *, database: str, user: str, password: str, settings: Mapping[str, str]
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
        "PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in settings.items()),
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
