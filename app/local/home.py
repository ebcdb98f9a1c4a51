"""The folder with one stack's data. Only one stack at a time runs on it."""

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
    """The folder `HEADWATER_HOME` and its contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.logs = self.folder / "logs"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder for the block. Raises `StackError` where the folder can't be written, and, changing nothing,
        when another stack has it.

        The kernel releases the lock when the process ends, so a killed stack never blocks the next.
        """
        try:
            # Other users may traverse the folder but not list it: root's stack runs the database servers as another
            # user.
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o711)
            # Without a buffer: what a full disk doesn't take would be written once more at the end.
            lock = (self.folder / "lock").open("ab", buffering=0)
        except OSError as error:
            raise self._unusable(error) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lock.truncate(0)
                lock.write(str(os.getpid()).encode())
                self.logs.mkdir(exist_ok=True, mode=0o700)
            except BlockingIOError:
                raise StackError(self._taken()) from None
            except OSError as error:
                raise self._unusable(error) from error
            yield

    def log(self, name: str) -> Path:
        """The log of a service. The previous stack's log is kept beside it."""
        return self.logs / f"{name}.log"

    def set_logs_aside(self) -> None:
        """Begins new logs; those of the last run are kept for one more run."""
        for log in self.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))

    def bound_logs(self, limit: int) -> None:
        """Moves the contents of each log of more than `limit` bytes to the copy beside it."""
        for log in self.logs.glob("*.log"):
            with contextlib.suppress(FileNotFoundError):
                if log.stat().st_size > limit:
                    _empty(log)

    def secret_keys(self) -> str:
        """The keys that seal secrets in our own database, created once: without them nothing can be opened."""
        path = self.folder / "secret-keys"
        if not path.exists():
            write_private(path, new_key_setting().encode())
        return path.read_text().strip()

    def kept_secret_keys(self) -> str | None:
        """The same keys if they were created before, else None; this creates none."""
        path = self.folder / "secret-keys"
        return path.read_text().strip() if path.exists() else None

    def _unusable(self, error: OSError) -> StackError:
        return StackError(f"can't use HEADWATER_HOME {self.folder}: {error.strerror}")

    def _taken(self) -> str:
        running = stack_file.read(self.folder)
        where = f"at {running.api_url}" if running else "and is just starting or stopping"
        process = (self.folder / "lock").read_text() or "unknown"
        return f"a stack runs in {self.folder} already, {where} (process {process})"


def _empty(log: Path) -> None:
    # Copied, not renamed: the service goes on appending to its open file. On a full disk, freeing space is more
    # important than the copy.
    with contextlib.suppress(OSError):
        shutil.copyfile(log, log.with_suffix(".log.1"))
    os.truncate(log, 0)
