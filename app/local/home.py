"""The folder of one stack's data. One stack at a time runs on it."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from app.core.secrets import new_key_setting
from app.local import stack_file
from app.local.errors import StackError
from app.local.files import write_private


class Home:
    """`HEADWATER_HOME`, and where in it what lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.logs = self.folder / "logs"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder for the block. Raises `StackError`, and touches nothing, when another stack has it.

        The kernel drops the lock with the process that holds it, so a killed stack never blocks the next.
        """
        try:
            # Others may pass, not look: the database servers of a root's stack run as another user.
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
            lock = (self.folder / "lock").open("a")
        except OSError as error:
            raise StackError(f"can't use HEADWATER_HOME {self.folder}: {error.strerror}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError(self._taken()) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self.logs.mkdir(exist_ok=True, mode=0o700)
            yield

    def log(self, name: str) -> Path:
        """The log of a part. The one of the stack before is kept beside it."""
        return self.logs / f"{name}.log"

    def set_logs_aside(self) -> None:
        """Starts every log anew; the ones of the last run stay readable for one more."""
        for log in self.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))

    def bound_logs(self, limit: int) -> None:
        """Empties each log of more than `limit` bytes into the one kept beside it."""
        for log in self.logs.glob("*.log"):
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_size > limit:
                    _empty(log)

    def secret_keys(self) -> str:
        """The keys that seal secrets in our own database, made once: without them nothing opens again."""
        path = self.folder / "secret-keys"
        if not path.exists():
            write_private(path, new_key_setting().encode())
        return path.read_text().strip()

    def _taken(self) -> str:
        running = stack_file.read(self.folder)
        where = f"at {running.api_url}" if running else "and is just starting or stopping"
        process = (self.folder / "lock").read_text() or "unknown"
        return f"a stack runs in {self.folder} already, {where} (process {process})"


def _empty(log: Path) -> None:
    # Copied, not renamed: the part goes on appending to the file that it was given. On a full disk the room
    # counts for more than the copy.
    with contextlib.suppress(OSError):
        shutil.copyfile(log, log.with_suffix(".log.1"))
    os.truncate(log, 0)
