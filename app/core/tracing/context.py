"""Which trace the current task belongs to, and how that is passed on: W3C Trace Context, version 00.

https://www.w3.org/TR/trace-context/#traceparent-header
"""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from app.core.tracing.spans import TraceSpan

TRACEPARENT = "traceparent"
_FORM = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_LENGTH = 55
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_SAMPLED = 1


class SpanContext(msgspec.Struct, frozen=True, gc=False):
    """What identifies a span in any process: the 16 bytes of its trace's id, and the 8 of its own."""

    trace_id: bytes
    span_id: bytes
    sampled: bool

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{'01' if self.sampled else '00'}"


current: ContextVar["TraceSpan | None"] = ContextVar("span", default=None)
"""The span that is under way in this task; None where nothing is traced."""
_origin: ContextVar[SpanContext | None] = ContextVar("trace_origin", default=None)


def current_trace_id() -> str | None:
    """The id of the current trace in hexadecimal digits; None where nothing is traced."""
    span = current.get()
    return None if span is None else span.context.trace_id.hex()


def current_traceparent() -> str | None:
    """The `traceparent` for a request that this task sends; None where nothing is traced."""
    span = current.get()
    return None if span is None else span.context.traceparent


def causing_traceparent() -> str | None:
    """The `traceparent` to store with work that this task causes: that of the request or the activity, and not that of
    the transaction that stores it. None where nothing is traced."""
    span = current.get()
    return None if span is None else span.first.context.traceparent


def parse_traceparent(text: str | None) -> SpanContext | None:
    """The span that the text names; None for what isn't a valid `traceparent`."""
    if text is None or len(text) != _LENGTH or (found := _FORM.fullmatch(text)) is None or text[:2] == "ff":
        return None
    trace_id, span_id, flags = (bytes.fromhex(part) for part in found.groups())
    if trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return SpanContext(trace_id, span_id, bool(flags[0] & _SAMPLED))


@contextmanager
def originating(traceparent: str | None) -> Iterator[None]:
    """Puts what the block has Temporal start into this trace, which may have begun long ago in another process."""
    token = _origin.set(parse_traceparent(traceparent))
    try:
        yield
    finally:
        _origin.reset(token)


def current_origin() -> SpanContext | None:
    """What `originating` has set."""
    return _origin.get()


def new_trace_id() -> bytes:
    return random.getrandbits(128).to_bytes(16, "big")


def new_span_id() -> bytes:
    return random.getrandbits(64).to_bytes(8, "big")
