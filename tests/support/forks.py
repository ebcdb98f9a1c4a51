"""The API and workers as tests start them: each a process of its own, which doesn't import the service anew.

An import takes a second of processor time, and a run starts more than a hundred of these processes. One process for
each that runs tests imports everything once (`tests.support.fork_server`), and forks. What it forks takes its
environment, and runs the same module as the command line of the service does.
"""

import asyncio
import os
import select
import socket
import sys
from functools import cache

import msgspec

from app.local.processes import ChildProcess, Command
from app.local.python_services import ApiService, WorkerService
from app.local.services import server_environ
from tests.support.fork_server import MOST_BYTES, CodeRequest, StartRequest, end_with, serve


class ForkedApi(ApiService):
    """Forked from a process that has imported it."""

    async def launch(self, command: Command) -> ChildProcess:
        return fork_server().launch(command)


class ForkedWorker(WorkerService):
    """Forked from a process that has imported it."""

    async def launch(self, command: Command) -> ChildProcess:
        return fork_server().launch(command)


class ForkedProcess:
    """A process that the fork server has started, as `asyncio.subprocess.Process` shows one."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self._server = server
        self._code: int | None = None
        self._alive = os.pidfd_open(pid)
        """Can be read once it has ended (pidfd_open(2))."""

    @property
    def returncode(self) -> int | None:
        if self._code is None and select.select([self._alive], [], [], 0)[0]:
            self._code = self._server.ask(CodeRequest(self.pid))
            os.close(self._alive)
        return self._code

    async def wait(self) -> int:
        while (code := self.returncode) is None:
            await _readable(self._alive)
        return code

    def send_signal(self, signal: int) -> None:
        os.kill(self.pid, signal)


class ForkServer:
    """The connection to one."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        # As a number: nobody closes it by chance.
        self._connection = connection.detach()
        self._pid = pid

    @classmethod
    def started(cls) -> "ForkServer":
        """One that has imported the API and the workers."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            theirs.set_inheritable(True)
            argv = (sys.executable, "-P", "-m", "tests.support.fork_server", str(theirs.fileno()))
            # In a session of its own: it gets no Ctrl-C, and ends when the connection does.
            return cls(ours, os.posix_spawn(sys.executable, argv, server_environ(), setsid=True))

    @classmethod
    def forked(cls) -> "ForkServer":
        """One that has imported what this process has, which has nothing but its main thread."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        if (pid := os.fork()) == 0:
            end_with(parent)
            ours.close()
            serve(theirs)
            os._exit(0)
        theirs.close()
        return cls(ours, pid)

    def launch(self, command: Command) -> ChildProcess:
        """Starts one of the service's own processes, which `command` names by `-m`."""
        module = command.argv[command.argv.index("-m") + 1 :]
        command.log.parent.mkdir(parents=True, exist_ok=True)
        return ChildProcess(command, self.start(StartRequest(module, dict(command.environ), str(command.log))))

    def start(self, request: StartRequest) -> ForkedProcess:
        return ForkedProcess(self, self.ask(request))

    def ask(self, request: StartRequest | CodeRequest) -> int:
        os.write(self._connection, msgspec.json.encode(request))
        return msgspec.json.decode(os.read(self._connection, MOST_BYTES), type=int)

    def close(self) -> None:
        os.close(self._connection)
        os.waitpid(self._pid, 0)


@cache
def fork_server() -> ForkServer:
    """This process's own, which is started when it is first asked for."""
    return ForkServer.started()


def close_fork_server() -> None:
    """Ends it, if there is one, with all that it has forked."""
    if fork_server.cache_info().currsize:
        fork_server().close()
        fork_server.cache_clear()


async def _readable(file: int) -> None:
    # Of its own: a loop knows one reader of each.
    own, loop = os.dup(file), asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(own, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(own)
        os.close(own)
