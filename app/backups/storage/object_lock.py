"""What a bucket with Object Lock needs: objects that nobody deletes before a time, and the deletion of their versions.

`obstore` knows neither, so this speaks to S3 through botocore. In such a bucket an ordinary deletion only hides an
object, and an ordinary overwrite only puts a newer version before it.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from app.backups.storage.credentials import credentials_file
from app.backups.storage.errors import MAX_MESSAGE, BackupLocked, StoreRefused, StoreUnavailable
from app.backups.storage.location import Bucket
from app.core.clock import utc_now

_AT_ONCE = 8
_PAGE = 1000
_OUR_FAULT = range(400, 500)
_MARGIN = timedelta(minutes=1)
"""What is kept for no longer than that may have ended by the store's clock, which takes no moment that has passed."""


class ObjectLock:
    """Each method raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, bucket: Bucket, mode: str, timeout_seconds: float) -> None:
        """`mode` is `governance` or `compliance`: in the latter not even the bucket's owner can delete before."""
        # Loaded here alone: it takes a second, and 20 MB, of every process that needs no lock.
        session = import_module("botocore.session").get_session()
        config = import_module("botocore.config").Config(
            connect_timeout=timeout_seconds / 4,
            read_timeout=timeout_seconds / 4,
            retries={"total_max_attempts": 2, "mode": "standard"},
            max_pool_connections=_AT_ONCE,
            s3={"addressing_style": "path"},
        )
        self._client: Any = session.create_client(
            "s3",
            region_name=os.environ.get("AWS_REGION"),
            endpoint_url=os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT")),
            config=config,
        )
        self._file = credentials_file()
        self._signing: Any = session.get_credentials()
        self._faults = import_module("botocore.exceptions")
        self._bucket = bucket
        self._mode = mode.upper()
        self._timeout = timeout_seconds

    async def keep(self, names: Sequence[str], until: datetime) -> None:
        """Keeps anybody from deleting these objects before `until`. The time can be prolonged, and not shortened."""
        retention = {"Mode": self._mode, "RetainUntilDate": until}
        for start in range(0, len(names), _AT_ONCE):
            await asyncio.gather(
                *(
                    self._asked(self._client.put_object_retention, Key=self._key(name), Retention=retention)
                    for name in names[start : start + _AT_ONCE]
                )
            )

    async def keep_like(self, name: str, other: str) -> None:
        """Keeps an object as long as the other one is kept. Nothing happens where that one isn't, or isn't there."""
        until = await self._kept_until(self._key(other))
        if until is not None and until > utc_now() + _MARGIN:
            await self.keep([name], until)

    async def delete(self, folder: str, names: Collection[str] | None = None) -> None:
        """Deletes every version of these objects of a folder, or of all its objects. Raises `BackupLocked`; what isn't
        locked may be gone then."""
        keys = None if names is None else {self._key(name) for name in names}
        marker: dict[str, str] = {}
        while True:
            page = await self._asked(
                self._client.list_object_versions, Prefix=self._key(f"{folder}/"), MaxKeys=_PAGE, **marker
            )
            versions = [
                {"Key": one["Key"], "VersionId": one["VersionId"]}
                for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
                if keys is None or one["Key"] in keys
            ]
            if versions:
                await self._delete(versions)
            if not page.get("IsTruncated"):
                return
            marker = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}

    async def _delete(self, versions: list[dict[str, str]]) -> None:
        answer = await self._asked(self._client.delete_objects, Delete={"Objects": versions, "Quiet": True})
        for error in answer.get("Errors", ()):
            refused = next(one for one in versions if one["Key"] == error["Key"])
            version = error.get("VersionId") or refused["VersionId"]
            until = await self._kept_until(error["Key"], VersionId=version)
            if until is not None:
                raise BackupLocked(until)
            raise StoreRefused(f"{self._bucket}: {error['Key']}: {error.get('Message', '')[:MAX_MESSAGE]}")

    async def _kept_until(self, key: str, **version: str) -> datetime | None:
        try:
            answer = await self._asked(self._client.head_object, Key=key, **version)
        except StoreRefused:
            return None
        until: datetime | None = answer.get("ObjectLockRetainUntilDate")
        return until

    def _key(self, name: str) -> str:
        return f"{self._bucket.prefix}/{name}" if self._bucket.prefix else name

    async def _asked(self, call: Callable[..., Any], **arguments: Any) -> Any:
        self._renew_keys()
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.to_thread(call, Bucket=self._bucket.name, **arguments)
        except self._faults.ClientError as fault:
            status = fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            kind = StoreRefused if status in _OUR_FAULT else StoreUnavailable
            raise kind(f"{self._bucket}: {str(fault)[:MAX_MESSAGE]}") from None
        except self._faults.BotoCoreError as fault:
            raise StoreUnavailable(f"{self._bucket}: {str(fault)[:MAX_MESSAGE]}") from None
        except TimeoutError:
            raise StoreUnavailable(f"{self._bucket}: no answer within {self._timeout:g} seconds") from None

    def _renew_keys(self) -> None:
        """Reads the keys anew from their file, which the client itself reads only once."""
        if self._file is None:
            return
        try:
            keys = self._file()
        except ValueError as fault:
            raise StoreRefused(f"{self._bucket}: {fault}") from None
        self._signing.access_key, self._signing.secret_key = keys["access_key_id"], keys["secret_access_key"]
        self._signing.token = keys.get("token")
