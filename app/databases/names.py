"""What databases and their teams are called, for operators, who read uuids badly."""

import re
from uuid import UUID

from app.store.session import fetch

_MARKUP = re.compile(r"[^\w .-]")
_LONGEST = 30


def without_markup(name: str) -> str:
    """For the Temporal UI, which renders what it is told; and a name is whatever its team calls it."""
    return _MARKUP.sub("?", name)[:_LONGEST]


async def names_of(databases: list[UUID]) -> dict[UUID, tuple[str, str | None]]:
    """By uuid: the database's name, and its team's. What is not in our records is left out."""
    rows = await fetch(
        "SELECT d.uuid, d.name, t.name AS team FROM databases d LEFT JOIN teams t ON t.id = d.team_id"
        " WHERE d.uuid = any($1::uuid[])",
        databases,
    )
    return {row["uuid"]: (row["name"], row["team"]) for row in rows}
