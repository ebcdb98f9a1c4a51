"""Folders of a run in memory, where the machine has enough of it.

The tests make and remove thousands of databases, each some three hundred files. On a disk's file system that takes more
processor time than anything else that they do. `PYTEST_DEBUG_TEMPROOT`, or pytest's `--basetemp`, names another place.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
_PREFIX = "hw-"
"""Short: paths of sockets have 107 bytes at most."""
_ROOT = "PYTEST_DEBUG_TEMPROOT"
_IN_DATA = ("PG_VERSION", "ibdata1")
"""Files in the data folder of a PostgreSQL server, and of one of MySQL or MariaDB."""
_FOLDER_BYTES = 13 * 2**30
"""What a whole run has written at its end."""
_FREE_BYTES = 20 * 2**30
"""That, and what its processes take: 22 GB were seen in use when the folders of tests that had passed were kept."""


class RunFolder:
    """The folder of one run, under which pytest makes all others. Until it is closed, no other run removes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self, *, keep: bool) -> None:
        """Removes it, unless somebody is to look at it: then one of the next runs does, and what servers had stored,
        without which their logs say the same, goes at once. The next run wants the room."""
        os.close(self._lock)
        if keep:
            _remove_data_of_servers(self._folder)
            os.write(2, f"what the run wrote is in {self._folder}, in memory, until another has failed\n".encode())
        else:
            shutil.rmtree(self._folder, ignore_errors=True)


def note_failure(text: str) -> None:
    """Beside what the failed test has written: without its message, that says little to who looks at it later."""
    if folder := os.environ.get(_ROOT):
        with Path(folder, "failures.txt").open("a") as notes:
            notes.write(f"{text}\n\n")


def _remove_data_of_servers(folder: Path) -> None:
    for path, _, files in os.walk(folder):
        if any(file in files for file in _IN_DATA):
            shutil.rmtree(path, ignore_errors=True)


def run_folder() -> RunFolder | None:
    """Has pytest make its folders in memory; None where another place is named, or there is no room."""
    if os.environ.get(_ROOT) or not MEMORY.is_dir():
        return None
    _remove_those_of_ended_runs()
    if not _has_room():
        return None
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY))
    os.environ[_ROOT] = str(folder)
    return RunFolder(folder)


def _has_room() -> bool:
    memory = os.statvfs(MEMORY)
    # Tests run programs that they write.
    runs_programs = not memory.f_flag & os.ST_NOEXEC
    is_large = memory.f_bavail * memory.f_frsize >= _FOLDER_BYTES
    return runs_programs and is_large and psutil.virtual_memory().available >= _FREE_BYTES


def _remove_those_of_ended_runs() -> None:
    """All but the last of them: a second try must not remove what the first has left."""
    ended: list[tuple[float, Path]] = []
    for folder in MEMORY.glob(f"{_PREFIX}*"):
        # Another run that begins may remove it first.
        with suppress(FileNotFoundError):
            status = folder.stat()
            if status.st_uid == os.getuid() and not _is_used(folder):
                ended.append((status.st_mtime, folder))
    for _, folder in sorted(ended)[:-1]:
        shutil.rmtree(folder, ignore_errors=True)


def _is_used(folder: Path) -> bool:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
