"""Filters as they are written in a query."""

import re
from typing import Any

from app.core.context import ActorKind
from app.core.errors import InvalidField

ACTORS = "user:ID, key:ID, operator or service"
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


def actor_filter(actor: str) -> dict[str, Any]:
    """The filter's fields. Raises `InvalidField`."""
    if actor in (ActorKind.OPERATOR.value, ActorKind.SERVICE.value):
        return {"actor_kind": actor}
    kind, _, number = actor.partition(":")
    if kind not in ("user", "key") or not _NUMBER.fullmatch(number):
        raise InvalidField("actor", f"Expected {ACTORS}.")
    return {"user_id" if kind == "user" else "api_key_id": int(number)}
