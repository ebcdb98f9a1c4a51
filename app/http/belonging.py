"""Which team has what a path names: asked only for callers whose roles differ from team to team, or who left one."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from app.applications import records as applications
from app.backups import records as backups
from app.blueprints import records as blueprints
from app.credentials import rotations
from app.databases import records as databases
from app.operations import listing as operations
from app.web.guards import Belonging, FindTeam
from app.web.parameters import parse_id, parse_uuid
from app.webhooks import records as webhooks


def belonging() -> Belonging:
    """For each resource."""
    return {
        "backups": _by_uuid(backups.was_owned),
        "blueprint_applications": _by_id(lambda id, teams: _is(applications.find_owned(id, teams))),
        "blueprints": _blueprint,
        "credential_rotations": _by_uuid(lambda uuid, teams: _is(rotations.find_owned(uuid, teams))),
        "databases": _by_uuid(databases.was_owned),
        "operations": _by_uuid(operations.is_owned),
        "teams": _team,
        "webhook_endpoints": _by_id(lambda id, teams: _is(webhooks.find_owned(id, teams))),
    }


def _by_uuid(is_owned: Callable[[UUID, list[int]], Awaitable[bool]]) -> FindTeam:
    async def find(text: str, teams: Sequence[int]) -> int | None:
        uuid = parse_uuid(text)
        if uuid is None or not await is_owned(uuid, list(teams)):
            return None
        for team in teams:
            if await is_owned(uuid, [team]):
                return team
        return None

    return find


def _by_id(is_owned: Callable[[int, list[int]], Awaitable[bool]]) -> FindTeam:
    async def find(text: str, teams: Sequence[int]) -> int | None:
        number = parse_id(text)
        if number is None or not await is_owned(number, list(teams)):
            return None
        for team in teams:
            if await is_owned(number, [team]):
                return team
        return None

    return find


async def _is(found: Awaitable[object | None]) -> bool:
    return await found is not None


async def _blueprint(text: str, teams: Sequence[int]) -> int | None:
    uuid = parse_uuid(text)
    record = await blueprints.find(uuid) if uuid is not None else None
    return record.team_id if record is not None and record.team_id in teams else None


async def _team(text: str, teams: Sequence[int]) -> int | None:
    number = parse_id(text)
    return number if number in teams else None
