"""The request that the current task serves."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request's id; empty outside a request. Answers, log lines and replays read it here."""


def current_request_id() -> str:
    """The id of the request that this task serves; empty outside one."""
    return request_id.get()
