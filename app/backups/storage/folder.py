"""What a store in a folder needs beside `obstore`: files that outlast a power failure, and what a crash left behind."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_UNFINISHED = re.compile(r"#[0-9]+$")
"""`obstore` writes a file under its name with a number, then renames it, and lists none of such names."""


def make_durable(root: Path, name: str) -> None:
    """Writes a file to the disk, and the folders that name it."""
    path = root / name
    _sync(path)
    for folder in path.parents:
        _sync(folder)
        if folder == root:
            return


def unfinished(root: Path, folder: str | None) -> Iterator[tuple[str, os.stat_result]]:
    """Files that are being written, or whose writer ended in the middle, by their names in the store."""
    for where, _, names in os.walk(root / (folder or "")):
        for name in names:
            if _UNFINISHED.search(name):
                path = Path(where, name)
                with contextlib.suppress(FileNotFoundError):  # it has just been finished
                    yield str(path.relative_to(root)), path.stat()


def remove(root: Path, names: Sequence[str]) -> None:
    """Removes files, and folders that they leave empty. One that is gone already is fine."""
    for name in names:
        path = root / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone
            for folder in path.parents:
                if folder == root:
                    break
                folder.rmdir()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
