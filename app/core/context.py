"""The request that the current task serves, and who acts in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

import msgspec


class ActorKind(StrEnum):
    KEY = "key"
    """A program, by an API key."""
    SESSION = "session"
    """A person who is signed in."""
    OPERATOR = "operator"
    """A person who runs the operator's command, or acts in Temporal."""
    SERVICE = "service"
    """The service itself: it does what is due, and puts right what is wrong."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who does something."""

    kind: ActorKind
    user_id: int | None = None
    key_id: int | None = None
    """The API key that a request came with."""
    name: str | None = None
    """The name of an operator in the operating system."""
    as_operator: bool = False
    """Whether the actor uses an operation for operators: a team can't undo what that begins."""


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request's id; empty outside a request. Answers, log lines and replays read it here."""
actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
"""Who acts in this task; None where nobody has said so."""


def current_request_id() -> str:
    """The id of the request that this task serves; empty outside one."""
    return request_id.get()


def act_as_operator() -> None:
    """Marks this task's actor, a client, as one that does what only operators do, from now on."""
    client = actor.get()
    if client is not None:
        actor.set(msgspec.structs.replace(client, as_operator=True))


@contextmanager
def in_nobodys_name() -> Iterator[None]:
    """For a block of a request that others' requests wait for."""
    token = actor.set(None)
    try:
        yield
    finally:
        actor.reset(token)


def current_actor() -> Actor | None:
    """Who acts in this task; None where nobody has said so."""
    return actor.get()
