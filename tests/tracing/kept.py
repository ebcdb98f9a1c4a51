"""Spans that stay in this process, in place of a collector's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.core.tracing.encoding import encoded_request
from app.core.tracing.spans import TraceSpan
from tests.support.collector import SeenSpan, read


class Kept:
    def __init__(self) -> None:
        self.spans: list[bytes] = []

    def put(self, span: TraceSpan) -> None:
        self.spans.append(span.encoded())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    def seen(self) -> list[SeenSpan]:
        """Since the last look."""
        spans, self.spans = self.spans, []
        return read(encoded_request(b"", b"", spans))
