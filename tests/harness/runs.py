"""Small runs of pytest in processes of their own, with the plugins that the tests of this repository run with."""

import asyncio
import fcntl
import os
import pty
import signal
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
_CTRL_C = b"\x03"


@dataclass
class Run:
    """One in `folder`. Its process is the supervisor, of whose children one is pytest."""

    folder: Path
    process: asyncio.subprocess.Process
    terminal: int
    workers: int
    """How many processes run its tests."""

    def press_ctrl_c(self) -> None:
        """As a person does: the terminal sends the signal to everything in the foreground."""
        os.write(self.terminal, _CTRL_C)

    @property
    def pytest(self) -> psutil.Process:
        [found] = [one for one in psutil.Process(self.process.pid).children() if "pytest" in one.cmdline()]
        return found

    async def end(self) -> tuple[int, str]:
        """Waits for it; the exit code and the output."""
        output, _ = await asyncio.wait_for(self.process.communicate(), 2 * LIMIT_SECONDS)
        assert self.process.returncode is not None
        return self.process.returncode, output.decode()


def _be_in_the_foreground() -> None:
    """Takes the terminal, and heeds Ctrl-C, which a shell has its background jobs ignore, with all that they start."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@asynccontextmanager
async def pytest_run(folder: Path, source: str, *options: str, workers: int = 1) -> AsyncIterator[Run]:
    """Runs the module `source`, in a session of its own with a terminal of its own."""
    (folder / "conftest.py").write_text('pytest_plugins = ["tests.support.plugins"]\n')
    (folder / "test_module.py").write_text(source)
    terminal, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}"),
        *("-p", "pytest_asyncio.plugin", "-p", "xdist.plugin", "-p", "no:cacheprovider"),
        *(f"--basetemp={folder / 'temporary'}", *options, str(folder)),
        *([f"--numprocesses={workers}"] if workers > 1 else []),
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            # The plugins that other packages bring take seconds to load.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            # Options for the outer run are not for this one, nor are its failures the outer one's.
            "PYTEST_ADDOPTS": "",
            "PYTEST_DEBUG_TEMPROOT": str(folder),
        },
        cwd=folder,
        stdin=theirs,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_be_in_the_foreground,
    )
    os.close(theirs)
    try:
        yield Run(folder, process, terminal, workers)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
        os.close(terminal)
