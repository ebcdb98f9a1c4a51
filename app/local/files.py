"""Small private files that survive a crash: written completely or not at all, readable only by their owner."""

import os
import secrets
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file in one step, with mode 0600; it is on disk when this returns."""
    # A reader must never see half a file, and a crash must keep the old one.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load_or_create_secret(path: Path) -> str:
    """The secret in this file, created on first use. It is hexadecimal: safe in a URL and in SQL quotes."""
    if not path.exists():
        write_private(path, secrets.token_hex(24).encode())
    return path.read_text()
