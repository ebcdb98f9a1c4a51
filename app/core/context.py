"""What the present task is about: the id of the request that it serves."""

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Empty outside a request. Answers, log lines and replays all read it here."""
