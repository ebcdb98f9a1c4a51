"""Structured logs: one JSON object a line on standard error, with the ids of what the line is about."""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from app.core import context

_SECRET_KEYS = frozenset({"password", "api_key", "secret", "dsn", "admin_dsn", "authorization", "token"})


def configure(log_format: str = "json", level: int = logging.INFO) -> None:
    """Routes structlog and the standard library's loggers to standard error in one form."""
    shared: list[Processor] = [
        _add_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _redact,
    ]
    renderer: list[Processor] = (
        # Plain tracebacks: structured and colourful ones would carry local variables, and with them passwords.
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def _add_request_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """So that the id in an answer finds every line that its request caused."""
    if request_id := context.request_id.get():
        event["request_id"] = request_id
    return event


def _redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A last wall: no value under a name that means a secret leaves the process."""
    for key in event:
        if key.lower() in _SECRET_KEYS:
            event[key] = "[redacted]"
    return event
