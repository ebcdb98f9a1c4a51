"""What every error that a client can meet has."""

from collections.abc import Mapping
from typing import Any, ClassVar


class AppError(Exception):
    """What the API answers when it refuses or fails. `details` and `headers` go out as they are."""

    code: ClassVar[str]
    status: ClassVar[int]
    transient: ClassVar[bool] = False
    """The same request may be answered otherwise a moment later, so the refusal is not kept for its
    Idempotency-Key."""
    example_details: ClassVar[Mapping[str, Any] | None] = None
    """`details` as the API's description shows them; None where there are none."""

    key_id: int | None = None
    """The API key that was refused, where it is a known one: for the log, never for the answer."""

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
