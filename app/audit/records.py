"""Events as they are read: pages for teams, and everything for operators."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import msgspec

from app.store.session import fetch_all, fetch_exists


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `audit_events`."""

    id: int
    at: datetime
    batch: int
    actor_kind: str
    user_id: int | None
    api_key_id: int | None
    actor_name: str | None
    action: str
    object: str
    subject_id: str | None
    team_id: int | None
    address: str | None
    request_id: str | None
    outcome: str
    error: str | None
    changes_json: str | None

    @property
    def changes(self) -> dict[str, list[Any]] | None:
        """What each field was, and what it is."""
        return None if self.changes_json is None else msgspec.json.decode(self.changes_json)


class EventFilters(msgspec.Struct, frozen=True, kw_only=True):
    """None lets all pass. `since` is the first moment, `until` the first that is too late."""

    actor_kind: str | None = None
    user_id: int | None = None
    api_key_id: int | None = None
    action: str | None = None
    object: str | None = None
    subject_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


COLUMNS = """e.id, e.at, e.batch, e.actor_kind, e.user_id, e.api_key_id, e.actor_name, e.action, e.object, e.subject_id,
    e.team_id, e.address, e.request_id, e.outcome, e.error, e.changes::text AS changes_json"""
_CONDITIONS = {
    "actor_kind": "e.actor_kind = ${} AND e.user_id IS NULL",
    "user_id": "e.user_id = ${}",
    "api_key_id": "e.api_key_id = ${}",
    "action": "e.action = ${}",
    "object": "e.object = ${}",
    "subject_id": "e.subject_id = ${}",
    "since": "e.at >= ${}",
    "until": "e.at < ${}",
}
"""Each is read off an index of its own."""
_AFTER = "(e.at, e.id) < (SELECT c.at, c.id FROM audit_events c WHERE c.id = ${})"
_AFTER_OWN = "(e.at, e.id) < (SELECT c.at, c.id FROM audit_events c WHERE c.id = ${} AND c.team_id = any($1))"
"""Nothing comes after a cursor that is another team's event: when something happened there is nobody else's
business."""
_NEWEST = "ORDER BY e.at DESC, e.id DESC LIMIT"


async def list_of_teams(
    teams: dict[int, datetime], filters: EventFilters, *, after: int | None, limit: int
) -> list[EventRecord]:
    """These teams' events, newest first, from the one of theirs that follows `after` on; of each team only events since
    its moment in `teams`."""
    asked = [list(teams), list(teams.values()), limit]
    conditions, arguments = _conditions(filters, after, first=len(asked) + 1, cursor=_AFTER_OWN)
    sql = f"""
    SELECT {COLUMNS} FROM unnest($1::bigint[], $2::timestamptz[]) AS mine (team_id, since)
    CROSS JOIN LATERAL (
        SELECT * FROM audit_events e WHERE e.team_id = mine.team_id AND e.at >= mine.since {conditions} {_NEWEST} $3
    ) e {_NEWEST} $3
    """  # noqa: S608 - our own words
    return await fetch_all(EventRecord, sql, *asked, *arguments)


async def is_of_teams(event: int, team_ids: list[int]) -> bool:
    """Whether the event is one of these teams'."""
    return await fetch_exists(
        "SELECT 1 FROM audit_events WHERE id = $1 AND team_id = any($2::bigint[])", event, team_ids
    )


async def is_recorded(team_id: int | None, object: str, id: str) -> bool:
    """Whether some event is about this thing of the team's, or of no team's."""
    return await fetch_exists(
        "SELECT 1 FROM audit_events WHERE (team_id = $1 OR $1::bigint IS NULL AND team_id IS NULL)"
        " AND object = $2 AND subject_id = $3",
        team_id,
        object,
        id,
    )


async def list_all(
    filters: EventFilters, *, team_id: int | None, after: int | None = None, limit: int
) -> list[EventRecord]:
    """Events for operators, newest first: one team's, or without `team_id` those of every team and of no team."""
    conditions, arguments = _conditions(filters, after, first=3)
    sql = f"""
    SELECT {COLUMNS} FROM audit_events e WHERE ($1::bigint IS NULL OR e.team_id = $1) {conditions} {_NEWEST} $2
    """  # noqa: S608 - our own words
    return await fetch_all(EventRecord, sql, team_id, limit, *arguments)


async def in_order(most: int = 1000) -> AsyncIterator[list[EventRecord]]:
    """All events, in the order in which they are sealed, at most `most` at a time."""
    after = (-1, -1)
    while True:
        sql = f"""
        SELECT {COLUMNS} FROM audit_events e WHERE (e.batch, e.id) > ($1, $2) ORDER BY e.batch, e.id LIMIT $3
        """  # noqa: S608 - our own words
        found = await fetch_all(EventRecord, sql, *after, most)
        if found:
            yield found
            after = (found[-1].batch, found[-1].id)
        if len(found) < most:
            return


def _conditions(filters: EventFilters, after: int | None, *, first: int, cursor: str = _AFTER) -> tuple[str, list[Any]]:
    given = {name: getattr(filters, name) for name in _CONDITIONS if getattr(filters, name) is not None}
    templates = [_CONDITIONS[name] for name in given] + ([cursor] if after is not None else [])
    numbered = [f"AND {template.format(first + place)}" for place, template in enumerate(templates)]
    return " ".join(numbered), [*given.values(), *([after] if after is not None else [])]
