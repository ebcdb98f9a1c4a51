"""Structured logs: one line for each event, on standard error, with the ids of its subject."""

import asyncio
import logging
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cache
from typing import TextIO

import msgspec
import structlog
from structlog.typing import Processor

from app.core import context, log_values
from app.core.tracing.context import current_trace_id

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_LEVEL_NAMES = {level: name for name, level in LEVELS.items()}
OURS = ("app", "activities", "workers", "workflows", "temporalio")
"""The loggers to which the level `debug` applies. At that level libraries log requests with headers and bodies, and so
secrets."""
_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    log_values.add_request_id,
    log_values.add_trace_id,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    log_values.redact,
)
_AS_JSON: tuple[Processor, ...] = (
    # Plain tracebacks: structured and colourful ones would carry local variables, and with them passwords.
    structlog.processors.format_exc_info,
    log_values.bound,
    structlog.processors.JSONRenderer(),
)


_TOGETHER_SECONDS = 0.005
"""How long a line waits for others, at most, when some have just been written."""


class LogLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line for a request or an activity, written by `write_line`, which sets `level`, `timestamp` and the ids of
    request and trace. Its fields hold numbers, ids and our own words, never a client's text. A field that is None is
    left out."""

    event: str
    logger: str
    level: str = ""
    timestamp: datetime | None = None
    request_id: str | None = None
    trace_id: str | None = None


class _Output(logging.StreamHandler[TextIO]):
    """Writes to standard error: records of `logging`, and `LogLine`s directly."""

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        super().__init__(stream)
        self._as_json = as_json
        self._encode = msgspec.json.Encoder().encode
        self._unwritten: list[str] = []
        self._flushing: asyncio.AbstractEventLoop | None = None
        """The event loop that is going to write the lines in `_unwritten`."""
        self._next_at = 0.0
        """When the next lines may be written, by the event loop's clock: lines that come earlier wait until then."""
        self._renderers = _AS_JSON if as_json else _console_processors(stream)
        self.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[log_values.add_core_fields, *_SHARED, log_values.add_temporal_ids],
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *self._renderers],
            )
        )

    def format(self, record: logging.LogRecord) -> str:
        # The one control character that JSON leaves as it is.
        return super().format(record).replace("\x7f", "\\u007f")

    def write(self, line: LogLine) -> None:
        """Writes the line at once; in an event loop, together with the others of its present round, and with those that
        follow the last ones closely, because a system call for each line is a tenth of the shortest request."""
        encoded = self._encode(line)
        text = encoded.decode() if self._as_json and encoded.isascii() else self._rendered(encoded)
        with self.lock or nullcontext():
            self._unwritten.append(text + self.terminator)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if self._flushing is not loop:
            self._flushing = loop
            early = self._next_at - loop.time()
            if early > 0:
                loop.call_later(early, self._flush_together, loop)
            else:
                loop.call_soon(self._flush_together, loop)

    def flush(self) -> None:
        with self.lock or nullcontext():
            if self._unwritten:
                lines, self._unwritten = self._unwritten, []
                self.stream.write("".join(lines))
        super().flush()

    def _flush_together(self, loop: asyncio.AbstractEventLoop) -> None:
        self._flushing = None
        self.flush()
        self._next_at = loop.time() + _TOGETHER_SECONDS

    def emit(self, record: logging.LogRecord) -> None:
        self.flush()
        super().emit(record)

    def _rendered(self, encoded: bytes) -> str:
        event = msgspec.json.decode(encoded)
        for processor in self._renderers:
            event = processor(None, "", event)
        return str(event)


def configure(log_format: str = "json", level: str = "info") -> None:
    """Sends the logs of structlog and the standard library to standard error in one format: `json`, or `console` for a
    person. `level` is the lowest of `LEVELS` that is written."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [_Output(sys.stderr, as_json=log_format == "json")]
    root.setLevel(max(LEVELS[level], logging.INFO))
    for name in OURS:
        logging.getLogger(name).setLevel(LEVELS[level])


def write_line(level: int, line: LogLine) -> None:
    """Writes the line if its level is enabled. It takes a sixth of the time of a structlog event, which would be a
    quarter of the shortest request's."""
    if not _logger(line.logger).isEnabledFor(level):
        return
    line.level = _LEVEL_NAMES[level]
    line.timestamp = datetime.now(UTC)
    line.request_id = context.current_request_id() or None
    line.trace_id = current_trace_id()
    for handler in logging.root.handlers:
        if isinstance(handler, _Output):
            handler.write(line)


_logger = cache(logging.getLogger)
"""Cached: the library's own look-up takes a lock."""


def _console_processors(stream: TextIO) -> tuple[Processor, ...]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=log_values.indented_traceback, sort_keys=False
    )
    return (log_values.bound, log_values.escape_control_characters, renderer)
