"""Credentials for S3 that are replaced while the service runs: those of a file, read anew for each request.

Keys in the environment stay what they were when the process started, and `obstore` itself reads no such file.
"""

import os
from configparser import ConfigParser, Error
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it is there for types alone
    from obstore.store import S3Credential

FILE_VARIABLE = "AWS_SHARED_CREDENTIALS_FILE"


class CredentialsFile:
    """A file in the format of AWS's own tools: a section for each profile."""

    def __init__(self, path: Path, profile: str) -> None:
        self._path = path
        self._profile = profile

    def __call__(self) -> "S3Credential":
        """The credentials as they are now, for one request. Raises `ValueError`, which shows nothing of what the file
        holds."""
        read = ConfigParser(interpolation=None, default_section="")
        try:
            read.read_string(self._path.read_text())
            keys = read[self._profile]
            return {
                "access_key_id": keys["aws_access_key_id"],
                "secret_access_key": keys["aws_secret_access_key"],
                "token": keys.get("aws_session_token"),
                "expires_at": datetime.now(UTC),
            }
        except (OSError, UnicodeError, Error, KeyError) as fault:
            why = f"no profile {self._profile!r} with a key and its secret can be read ({type(fault).__name__})"
            raise ValueError(f"{FILE_VARIABLE}: {self._path}: {why}") from None


def credentials_file() -> CredentialsFile | None:
    """The file that the environment names; None if it names none, or has keys itself, which come first, as with AWS's
    own tools."""
    path = os.environ.get(FILE_VARIABLE)
    if not path or os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    return CredentialsFile(Path(path).expanduser(), os.environ.get("AWS_PROFILE") or "default")
