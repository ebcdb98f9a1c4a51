"""Where the store is: the setting HEADWATER_BACKUP_STORE, and the client for it."""

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from app.backups.storage.credentials import credentials_file
from app.core.settings import InvalidSettings, Settings

_VARIABLE = "HEADWATER_BACKUP_STORE"
_RETRIES = 3


class Folder(msgspec.Struct, frozen=True):
    path: Path

    def __str__(self) -> str:
        return self.path.as_uri()


class Bucket(msgspec.Struct, frozen=True):
    name: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}"


def location(settings: Settings) -> Folder | Bucket:
    """Raises `InvalidSettings`."""
    if settings.backup_store is None:
        return Folder((settings.home / "backups").absolute())
    parts = urlsplit(settings.backup_store)
    if parts.query or parts.fragment:
        raise InvalidSettings(f"{_VARIABLE}: expected no query and no fragment")
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.strip("/"):
        return Folder(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc and "@" not in parts.netloc and ":" not in parts.netloc:
        return Bucket(parts.netloc, unquote(parts.path).strip("/"))
    raise InvalidSettings(f"{_VARIABLE}: expected file:///folder or s3://bucket/prefix")


def client(place: Folder | Bucket, timeout_seconds: float) -> LocalStore | S3Store:
    """The client for a folder or a bucket. Makes the folder if necessary; a bucket is sent no request yet. Raises
    `InvalidSettings`."""
    try:
        if isinstance(place, Folder):
            place.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            return LocalStore(place.path)
        _forget_empty_variables()
        file = credentials_file()
        if file is not None:
            file()  # raises now for one that can't be read
        # obstore reads the AWS variables itself. It takes an address without TLS only when asked to.
        plain = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", "")).startswith("http://")
        return S3Store(
            place.name,
            prefix=place.prefix or None,
            credential_provider=file,
            # Half of it, so that a request that nobody answers is repeated once.
            client_options={"timeout": timedelta(seconds=timeout_seconds / 2), "allow_http": plain},
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=timeout_seconds / 2)},
        )
    except (OSError, ValueError, BaseError) as fault:
        raise InvalidSettings(f"{_VARIABLE}: {place} can't be used: {fault}") from None


def _forget_empty_variables() -> None:
    """Removes empty AWS variables from the environment: they count as not given, as with our own settings. A compose
    file can't leave one out."""
    for name in [name for name, value in os.environ.items() if name.startswith("AWS_") and not value.strip()]:
        del os.environ[name]
