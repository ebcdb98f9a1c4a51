"""The request that the current task serves, and who sent it."""

from contextvars import ContextVar

import msgspec


class Actor(msgspec.Struct, frozen=True):
    """Whose key a request came with."""

    user_id: int
    key_id: int


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request's id; empty outside a request. Answers, log lines and replays read it here."""
actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
"""The caller; None outside a request, as for operators and for the service itself."""


def current_request_id() -> str:
    """The id of the request that this task serves; empty outside one."""
    return request_id.get()


def current_actor() -> Actor | None:
    """Who sent the request that this task serves; None outside one."""
    return actor.get()
