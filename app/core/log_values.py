"""What becomes of values before they are logged: secrets are left out, lengths bounded, control characters written
out. A line then is one line whatever is in it: text of clients, servers or models can neither end it nor steer a
terminal."""

import traceback
from typing import Any, TextIO

from structlog.typing import EventDict, ExcInfo, WrappedLogger

from app.core import context

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
    """So that the id in an answer finds every line that its request caused."""
    if request_id := context.current_request_id():
        event["request_id"] = request_id
    return event


def add_temporal_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Of the lines that the SDK and workflows write: the SDK hands the ids over beside the message."""
    record = event.get("_record")
    for attribute, names in (("temporal_workflow", _WORKFLOW_FIELDS), ("temporal_activity", _ACTIVITY_FIELDS)):
        given: dict[str, Any] = getattr(record, attribute, None) or {}
        for theirs, ours in names.items():
            if theirs in given:
                event[ours] = given[theirs]
    return event


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A last wall: no value under a name that means a secret leaves the process."""
    for key in event:
        if key.lower() in _SECRET_KEYS:
            event[key] = "[redacted]"
    return event


def bound(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Cuts what is too long. Of a traceback the end is kept, which says what happened."""
    for key, value in event.items():
        if key == "exception":
            event[key] = _end_of(value)
        elif isinstance(value, str) and len(value) > _MAX_CHARACTERS:
            event[key] = f"{value[:_MAX_CHARACTERS]}… ({len(value)} characters)"
    return event


def escape_control_characters(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """For the form that doesn't escape them by itself."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = value.translate(_ESCAPES)
    return event


def indented_traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    """For a person. Without local variables, which may be passwords; and indented, so that no line of an error's
    message looks like one of the log's."""
    for line in _end_of("".join(traceback.format_exception(*exc_info))).splitlines():
        stream.write(f"\n    {line.translate(_ESCAPES)}")


def _end_of(text: str) -> str:
    return text if len(text) <= _MAX_TRACEBACK_CHARACTERS else f"… {text[-_MAX_TRACEBACK_CHARACTERS:]}"
