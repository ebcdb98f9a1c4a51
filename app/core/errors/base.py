"""The base class of all errors that a client can receive."""

from collections.abc import Mapping
from typing import Any, ClassVar


class AppError(Exception):
    """An error answer. `details` and `headers` are sent as they are."""

    code: ClassVar[str]
    status: ClassVar[int]
    transient: ClassVar[bool] = False
    """It decides nothing about the request, so it is not stored for its Idempotency-Key (decision 4)."""
    example_details: ClassVar[Mapping[str, Any] | None] = None
    """`details` in the API's description; None where there are none."""

    key_id: int | None = None
    """The rejected API key, if it is known: for the log, never for the answer."""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details is not None else None
        self.headers = dict(headers or {})
