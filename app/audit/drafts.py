"""What is known of the change that this task makes, until its event is written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import msgspec

MOST_TEXT = 200
"""Characters of a value; more is cut off."""
MASK = "***"
_Found = TypeVar("_Found", bound="_Owned | None")
_SECRET = re.compile(r"password|secret|token|credential|dsn|private|api_key$", re.IGNORECASE)
_ID = re.compile(r"[!-~]{1,64}")


class _Owned(Protocol):
    @property
    def team_id(self) -> int | None: ...


class Draft(msgspec.Struct, kw_only=True):
    """An event to be. `settled` where nothing more is to be written: the event is there, or there is to be none.
    `refusals` is how many of a user's refusals leave an event in an hour."""

    action: str
    object: str
    """The type of the object that the action is about."""
    id: str | None = None
    """The object's identifier."""
    team_id: int | None = None
    """The team that the object belongs to, once that is known."""
    own_team_id: int | None = None
    """The caller's primary team, for an object whose team isn't known."""
    address: str | None = None
    changes: dict[str, list[Any]] | None = None
    refusals: int = 0
    settled: bool = False


_draft: ContextVar[Draft | None] = ContextVar("audit_draft", default=None)


def current_draft() -> Draft | None:
    """The draft of this task's change; None where the task changes nothing for anybody, or in nobody's name."""
    return _draft.get()


@contextmanager
def drafting(draft: Draft | None) -> Iterator[None]:
    """Makes this the task's draft during the block."""
    token = _draft.set(draft)
    try:
        yield
    finally:
        _draft.reset(token)


def note(
    *,
    changes: Mapping[str, Sequence[Any]] | None = None,
    subject: tuple[str, object] | None = None,
    team_id: int | None = None,
) -> None:
    """Adds to the event of the change that this task makes; does nothing where it makes none. `changes` has a pair for
    each field: what it was, and what it is. `subject` is the kind of thing and its id, where the request's path doesn't
    name it; `team_id` is the team that it belongs to."""
    draft = _draft.get()
    if draft is None:
        return
    if changes:
        draft.changes = {**(draft.changes or {}), **readable(changes)}
    if subject is not None:
        draft.object, draft.id = subject[0], valid_id(subject[1])
    if team_id is not None:
        draft.team_id = team_id


def found(record: _Found) -> _Found:
    """Returns the record, and notes its team in the draft unless one is noted already: a change looks up first what it
    is about."""
    draft = _draft.get()
    if draft is not None and draft.team_id is None and record is not None:
        draft.team_id = record.team_id
    return record


def note_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Notes the fields that have changed, each with its value before and after."""
    note(changes={name: (before.get(name), value) for name, value in after.items() if before.get(name) != value})


def readable(changes: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The changes as they are written: plain values, short, and nothing of a secret."""
    return {name: [_readable(name, value) for value in pair] for name, pair in changes.items()}


def valid_id(value: object) -> str | None:
    """The value as text; None if it can't be an id: a path may have any text in an id's place."""
    text = str(value)
    return text if _ID.fullmatch(text) else None


def _readable(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if _SECRET.search(name):
        return MASK
    if isinstance(value, list | tuple | set | frozenset):
        return [_readable(name, one) for one in list(value)[:20]]
    plain = value if isinstance(value, str) else msgspec.to_builtins(value)
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    return text.replace("\x00", "")[:MOST_TEXT]
