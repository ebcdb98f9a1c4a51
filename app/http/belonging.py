"""Which team has what a path names: asked only for callers whose roles differ from team to team, or who left one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from app.backups import records as backups
from app.blueprints import records as blueprints
from app.blueprints.applications import records as applications
from app.credentials import rotations
from app.databases import records as databases
from app.operations import listing as operations
from app.web.guards import Belonging, FindTeam
from app.web.parameters import parse_id, parse_uuid
from app.webhooks import records as webhooks

Identifier = TypeVar("Identifier")


def belonging() -> Belonging:
    """For each resource, the function that finds its team."""
    return {
        "backups": _by(parse_uuid, backups.team_of),
        "blueprint_applications": _by(parse_id, applications.team_of),
        "blueprints": _blueprint,
        "credential_rotations": _by(parse_uuid, rotations.team_of),
        "databases": _by(parse_uuid, databases.team_of),
        "operations": _by(parse_uuid, operations.team_of),
        "teams": _team,
        "webhook_endpoints": _by(parse_id, webhooks.team_of),
    }


def _by(
    parse: Callable[[str], Identifier | None], team_of: Callable[[Identifier, list[int]], Awaitable[int | None]]
) -> FindTeam:
    async def find(text: str, teams: Sequence[int]) -> int | None:
        identifier = parse(text)
        return None if identifier is None else await team_of(identifier, list(teams))

    return find


async def _blueprint(text: str, teams: Sequence[int]) -> int | None:
    uuid = parse_uuid(text)
    record = await blueprints.find(uuid) if uuid is not None else None
    return record.team_id if record is not None and record.team_id in teams else None


async def _team(text: str, teams: Sequence[int]) -> int | None:
    number = parse_id(text)
    return number if number in teams else None
