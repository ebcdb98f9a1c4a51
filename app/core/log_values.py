"""Preparing values for the log: secrets are removed, lengths bounded, control characters escaped. So each event stays
one line, and text of clients, servers or models can't control a terminal."""

import traceback
from typing import Any, TextIO

from structlog.typing import EventDict, ExcInfo, WrappedLogger

from app.core import context
from app.core.tracing.context import current_trace_id

_SECRET_KEYS = frozenset({"password", "api_key", "secret", "dsn", "admin_dsn", "authorization", "token"})
_MAX_CHARACTERS = 4_000
"""Characters of one value."""
_MAX_TRACEBACK_CHARACTERS = 32_000
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""C0, DEL, C1, and Unicode's two separators of lines."""
_WORKFLOW_FIELDS = {"workflow_id": "workflow_id", "workflow_type": "workflow_type", "run_id": "run_id"}
_ACTIVITY_FIELDS = {
    "workflow_id": "workflow_id",
    "workflow_type": "workflow_type",
    "workflow_run_id": "run_id",
    "activity_type": "activity",
    "attempt": "attempt",
}
"""Names that Temporal's SDK gives, and ours."""


def add_request_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the id of the request, so that the id in an answer finds all lines of its request."""
    if request_id := context.current_request_id():
        event["request_id"] = request_id
    return event


def add_trace_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the id of the trace, so that the lines of a trace can be found, and the trace of a line."""
    if trace_id := current_trace_id():
        event["trace_id"] = trace_id
    return event


def add_temporal_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the ids that Temporal's SDK attaches to its own lines and those of workflows."""
    record = event.get("_record")
    for attribute, names in (("temporal_workflow", _WORKFLOW_FIELDS), ("temporal_activity", _ACTIVITY_FIELDS)):
        given: dict[str, Any] = getattr(record, attribute, None) or {}
        for theirs, ours in names.items():
            if theirs in given:
                event[ours] = given[theirs]
    return event


def add_core_fields(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the fields of a record of the SDK's core, such as `run_id` and `details`, as text."""
    entry = getattr(event.get("_record"), "temporal_log", None)
    if entry is not None:
        for name, value in entry.fields.items():
            event.setdefault(name, str(value))
    return event


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Removes every value whose key names a secret: the last safeguard."""
    for key in event:
        if key.lower() in _SECRET_KEYS:
            event[key] = "[redacted]"
    return event


def bound(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Shortens long values. Of a traceback the end is kept, which names the error."""
    for key, value in event.items():
        if key == "exception":
            event[key] = _end_of(value)
        elif isinstance(value, str) and len(value) > _MAX_CHARACTERS:
            event[key] = f"{value[:_MAX_CHARACTERS]}… ({len(value)} characters)"
    return event


def escape_control_characters(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escapes control characters, for the format that doesn't do so itself."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = value.translate(_ESCAPES)
    return event


def indented_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    """A traceback for the console format: without local variables, which may be passwords, and indented, so that no
    line of an error's message looks like a log line."""
    for line in _end_of("".join(traceback.format_exception(*exc_info))).splitlines():
        stream.write(f"\n    {line.translate(_ESCAPES)}")


def _end_of(text: str) -> str:
    return text if len(text) <= _MAX_TRACEBACK_CHARACTERS else f"… {text[-_MAX_TRACEBACK_CHARACTERS:]}"
