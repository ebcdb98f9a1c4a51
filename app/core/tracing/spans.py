"""Spans: what they are made by, how they are nested, and what becomes of them when they end.

A span is encoded when it is sent, with many others: to encode them one by one, at the end of each request, takes a
processor several times as long. The number of spans that wait is bounded. Where nothing is traced, `span` costs one
look at a context variable.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Token
from datetime import datetime
from enum import IntEnum
from types import TracebackType
from typing import Protocol

from app.core.tracing.context import SpanContext, current, new_span_id, new_trace_id
from app.core.tracing.encoding import Attributes, Value, encoded_attributes, encoded_span
from app.core.tracing.sampling import Sampler

_CANCELLED = "CancelledError"
_NO_ATTRIBUTES: Attributes = {}
_MOST_WITHIN = 128
"""The maximum of spans of one process within its first span of a trace."""
_LEFT_OUT = "headwater.spans_left_out"


class SpanKind(IntEnum):
    """`Span.SpanKind` of OTLP."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


class Destination(Protocol):
    """What takes spans that have ended."""

    def put(self, span: "TraceSpan") -> None:
        """Takes the span at once, from any thread. Drops it when there is no room."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Sends the spans during the block, and for a short time after it what is left."""


class Tracer:
    """Makes the spans of one process."""

    def __init__(self, destination: Destination, sampler: Sampler) -> None:
        self.destination = destination
        self._sampler = sampler

    def begin(
        self,
        name: str,
        kind: SpanKind,
        *,
        parent: SpanContext | None = None,
        links: Sequence[SpanContext] = (),
        attributes: Attributes = _NO_ATTRIBUTES,
    ) -> "TraceSpan":
        """The first span of this process in its trace. `parent` is a span of another process; without it a trace
        begins. Enter the span to make it the current one."""
        trace_id = parent.trace_id if parent is not None else new_trace_id()
        sampled = self._sampler(trace_id, parent)
        own = SpanContext(trace_id, new_span_id(), sampled)
        return TraceSpan(self, own, name, kind, None if parent is None else parent.span_id, True, links, attributes)

    def resume(
        self, own: SpanContext, name: str, kind: SpanKind, *, parent: SpanContext | None, began: datetime
    ) -> "TraceSpan":
        """A span that began earlier, maybe in another process, to be ended here."""
        span = TraceSpan(self, own, name, kind, None if parent is None else parent.span_id, True, (), _NO_ATTRIBUTES)
        span.began = int(began.timestamp() * 1_000_000) * 1000
        return span

    def decide(self, trace_id: bytes, parent: SpanContext | None) -> bool:
        """Whether a trace that begins here is recorded."""
        return self._sampler(trace_id, parent)


class TraceSpan:
    """A step and its time. Leaving the block ends it; an exception that leaves the block is named by its class, and
    never quoted."""

    __slots__ = (
        "_first",
        "_kind",
        "_links",
        "_parent",
        "_remote",
        "_room",
        "_token",
        "_tracer",
        "attributes",
        "began",
        "context",
        "ended",
        "failed",
        "kept",
        "name",
        "shared",
    )

    def __init__(
        self,
        tracer: Tracer,
        context: SpanContext,
        name: str,
        kind: SpanKind,
        parent: bytes | None,
        remote: bool,
        links: Sequence[SpanContext],
        attributes: Attributes,
        first: "TraceSpan | None" = None,
    ) -> None:
        """`first` is the process's first span of this trace; None for that span itself."""
        self._tracer = tracer
        self._first = first
        self._room = _MOST_WITHIN
        self.context = context
        self.name = name
        self._kind = kind
        self._parent = parent
        self._remote = remote
        self._links = links
        self.attributes: dict[str, Value] = {**attributes}
        """Ids, numbers and our own words: never a text that somebody else chose."""
        self.shared = b""
        """Further attributes, already encoded."""
        self.failed = False
        self.kept = context.sampled
        """Whether it is recorded."""
        self._token: Token[TraceSpan | None] | None = None
        self.began = time.time_ns()
        self.ended = 0

    @property
    def first(self) -> "TraceSpan":
        """The process's first span of this trace. No span refers to itself: otherwise each would wait for the collector
        of cycles, and every request would get other memory."""
        return self if self._first is None else self._first

    def child(self, name: str, kind: SpanKind, attributes: Attributes) -> "TraceSpan | None":
        """A span within this one; None when there are enough: what has a thousand steps must not crowd out everything
        else."""
        first = self.first
        if first._room <= 0:
            first.attributes[_LEFT_OUT] = 1 - first._room
            first._room -= 1
            return None
        first._room -= 1
        own = SpanContext(self.context.trace_id, new_span_id(), self.context.sampled)
        return TraceSpan(self._tracer, own, name, kind, self.context.span_id, False, (), attributes, first)

    def set(self, key: str, value: Value) -> None:
        self.attributes[key] = value

    def fail(self, kind: str) -> None:
        """`kind` is a class of failures, in our own words."""
        self.failed = True
        self.attributes["error.type"] = kind

    def end(self) -> None:
        """Ends the span, which doesn't change from then on. Call it for a span that was not entered."""
        if self.kept:
            self.ended = time.time_ns()
            self._tracer.destination.put(self)

    def encoded(self) -> bytes:
        """The span as it is sent, once it has ended."""
        return encoded_span(
            self.context,
            name=self.name,
            kind=self._kind,
            began=self.began,
            ended=self.ended,
            parent=self._parent,
            remote=self._remote,
            attributes=self.shared + encoded_attributes(self.attributes),
            links=self._links,
            failed=self.failed,
        )

    def __enter__(self) -> "TraceSpan":
        self._token = current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._token is not None, "it was entered"
        try:  # noqa: SIM105 - the other form takes a tenth of a span's time
            current.reset(self._token)
        except ValueError:
            # A generator that holds a span may be closed by another task, whose spans are its own.
            pass
        # The token holds on to all that the task knows.
        self._token = None
        if kind is not None and "error.type" not in self.attributes:
            self.attributes["error.type"] = kind.__name__
            self.failed = kind.__name__ != _CANCELLED
        self.end()


class NoSpan:
    """Stands for a span where nothing is traced."""

    def set(self, key: str, value: Value) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def __enter__(self) -> "NoSpan":
        return self

    def __exit__(self, *_: object) -> None:
        pass


NO_SPAN = NoSpan()


def span(name: str, kind: SpanKind = SpanKind.INTERNAL, attributes: Attributes = _NO_ATTRIBUTES) -> TraceSpan | NoSpan:
    """A span for a step of this task, for a `with` block. It does nothing where nothing is traced."""
    parent = current.get()
    if parent is None or not parent.context.sampled:
        return NO_SPAN
    return parent.child(name, kind, attributes) or NO_SPAN
