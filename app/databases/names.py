"""What databases and their teams are called, for operators, who read uuids badly."""

from uuid import UUID

from app.store.session import fetch


async def names_of(databases: list[UUID]) -> dict[UUID, tuple[str, str | None]]:
    """By uuid: the database's name, and its team's. What is not in our records is left out."""
    rows = await fetch(
        "SELECT d.uuid, d.name, t.name AS team FROM databases d LEFT JOIN teams t ON t.id = d.team_id"
        " WHERE d.uuid = any($1::uuid[])",
        databases,
    )
    return {row["uuid"]: (row["name"], row["team"]) for row in rows}
