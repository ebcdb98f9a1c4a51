"""A child process of the stack: in its own process group, with a log, ended with its parent."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from app.local import stale_processes as leftovers
from app.local.errors import StackError

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Command:
    """How to run a child process. `argv[0]` is a program's path."""

    argv: tuple[str, ...]
    log: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    """The complete environment, not additions to ours."""
    folder: Path | None = None
    stdin: Path | None = None
    takes_input: bool = False
    """Whether it waits for what `ChildProcess.become` gives it."""
    stop_signal: signal.Signals = signal.SIGTERM
    """The signal that makes the program stop cleanly."""
    stop_seconds: float = 5
    """How long it may take to stop before it is killed."""
    death_signal: signal.Signals = signal.SIGKILL
    """The signal that the kernel sends to the child when this process dies for any reason."""
    postgres_data: Path | None = None
    """A PostgreSQL server's data folder, by which its helpers outside the process group are found."""


class Handle(Protocol):
    """A running program. `asyncio.subprocess.Process` is one."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        ...

    async def wait(self) -> int:
        """Waits for its end; a negative number is the signal that ended it."""
        ...

    def send_signal(self, signal: int) -> None:
        """Raises `ProcessLookupError` when it has ended."""
        ...


class ChildProcess:
    """A started `Command`. Start it from the main thread only: the kernel sends `death_signal` when the thread that
    started the child ends."""

    def __init__(self, command: Command, process: Handle, stdin: asyncio.StreamWriter | None = None) -> None:
        self._command = command
        self._process = process
        self._stdin = stdin
        self._group_ended = False

    @classmethod
    async def start(cls, command: Command) -> "ChildProcess":
        """Raises `StackError` when the program can't be started or its log not be opened, or remaining processes of an
        earlier server on the same data can't be ended."""
        if command.postgres_data is not None:
            await leftovers.end_backends(command.postgres_data)
        with contextlib.ExitStack() as files:
            log = files.enter_context(_opened(command.log))
            stdin = files.enter_context(command.stdin.open("rb")) if command.stdin else DEVNULL
            stdin = PIPE if command.takes_input else stdin
            try:
                process = await asyncio.create_subprocess_exec(
                    *command.argv,
                    stdin=stdin,
                    stdout=log,
                    stderr=log,
                    env=dict(command.environ),
                    cwd=command.folder,
                    start_new_session=True,
                    preexec_fn=_die_with_parent(command.death_signal),
                )
            except OSError as error:
                raise StackError(f"can't run {command.argv[0]}: {error.strerror}") from error
        return cls(command, process, process.stdin)

    def become(self, command: Command, message: bytes) -> "ChildProcess":
        """Makes this process another command's. It must have been started with `takes_input`, and does what `message`
        says."""
        assert self._stdin is not None, "it takes no input"
        self._stdin.write(message)
        self._stdin.close()
        return ChildProcess(command, self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> Path:
        return self._command.log

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Waits for the end of the process; a negative number is the signal that ended it."""
        return await self._process.wait()

    async def stop(self, timeout: float | None = None) -> None:
        """Asks the process to stop, waits for `timeout` seconds (the command's by default), and kills what is left
        of it. Repeatable."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                self._process.send_signal(self._command.stop_signal)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._command.stop_seconds if timeout is None else timeout):
                    await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kills the whole process group, and helpers outside it, which may outlive the process."""
        if not self._group_ended:
            # Only once: afterwards the number may belong to another group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._group_ended = True
        await self._process.wait()
        if self._command.postgres_data is not None:
            # The next start tries again to end what can't be ended now, and reports it.
            with contextlib.suppress(StackError):
                await leftovers.end_backends(self._command.postgres_data)


async def run_to_end(command: Command, timeout: float) -> None:
    """Runs a command until it ends. Raises `StackError` with the log's last lines when it fails or takes longer than
    `timeout` seconds. One that takes longer, or whose caller is cancelled, is asked to stop before it is killed."""
    child = await ChildProcess.start(command)
    try:
        async with asyncio.timeout(timeout):
            code = await child.wait()
    except TimeoutError:
        raise StackError(f"{command.argv[0]} took longer than {timeout:.0f} s\n{tail(command.log)}") from None
    finally:
        await child.stop()
    if code != 0:
        raise StackError(f"{command.argv[0]} failed ({code})\n{tail(command.log)}")


def _opened(log: Path) -> BinaryIO:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError as error:
        raise StackError(f"can't write {log}: {error.strerror}") from error


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for a message to the operator."""
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def _die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    parent = os.getpid()

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel had the request
            os._exit(1)

    return prepare
