"""What the present task is about: the id of the request that it serves."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Empty outside a request. Answers, log lines and replays all read it here."""


def current_request_id() -> str:
    """The id of the request that this task serves; empty outside one."""
    return request_id.get()
