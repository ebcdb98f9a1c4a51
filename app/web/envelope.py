"""The outer shape of every answer. Interface specification, sections 1, 2.10 and 2.11."""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from app.core.context import current_request_id

Data = TypeVar("Data")
Reference = TypeVar("Reference")


class Item(Struct, Generic[Data], kw_only=True):
    """One object."""

    message: str | UnsetType = UNSET
    data: Data
    request_id: str = field(default_factory=current_request_id)


class Change(Item[Data], Generic[Data], kw_only=True):
    """The result of a request with an Idempotency-Key."""

    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this key did it, and this is the answer that it got."""


class AcceptedChange(Change[Data], Generic[Data, Reference], kw_only=True):
    """The result of a request for a change that takes time."""

    operation: Reference | UnsetType = UNSET
    """The operation that follows it, as it is when the answer is made."""


class Page(Struct, Generic[Data], kw_only=True):
    """One page of a list. When `has_more` is true, the last item's identifier is the next page's
    `starting_after`."""

    data: list[Data]
    has_more: bool
    request_id: str = field(default_factory=current_request_id)


class ErrorBody(Struct, kw_only=True):
    code: str
    message: str
    details: dict[str, Any] | UnsetType = UNSET


class ErrorAnswer(Struct, kw_only=True):
    error: ErrorBody
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this Idempotency-Key got this answer."""
    request_id: str = field(default_factory=current_request_id)


_ENCODER = msgspec.json.Encoder(decimal_format="number")
"""A `Decimal` is a whole number that may have more than 64 bits."""


def encode(answer: Struct) -> bytes:
    return _ENCODER.encode(answer)
