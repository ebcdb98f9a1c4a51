"""`GET /databases`: newest first, in pages that a change under way doesn't disturb."""

from uuid import uuid4

from app.store.session import fetch
from tests.support.answers import body_of, data_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi


async def some(caller: Caller, count: int) -> list[str]:
    """Uuids, oldest first."""
    return [data_of(await caller.create(f"db-{number}"), 202)["uuid"] for number in range(count)]


async def uuids(caller: Caller, **params: str | int) -> tuple[list[str], bool]:
    body = body_of(await caller.get("/databases", params=params))
    return [item["uuid"] for item in body["data"]], body["has_more"]


async def test_newest_first(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = await some(caller, 3)
    assert await uuids(caller) == (made[::-1], False)


async def test_nothing_yet(lone: LoneApi) -> None:
    assert await uuids(await lone.caller()) == ([], False)


async def test_pages_meet_without_gap_or_overlap(lone: LoneApi) -> None:
    caller = await lone.caller()
    newest_first = (await some(caller, 5))[::-1]
    assert await uuids(caller, limit=2) == (newest_first[:2], True)
    # What is added meanwhile stands before the cursor, and moves no page behind it.
    added = await some(caller, 1)
    assert await uuids(caller, limit=2, starting_after=newest_first[1]) == (newest_first[2:4], True)
    assert await uuids(caller, limit=2, starting_after=newest_first[3]) == (newest_first[4:], False)
    assert await uuids(caller, limit=2, starting_after=newest_first[4]) == ([], False)
    assert await uuids(caller, limit=1) == (added, True)


async def test_has_more_at_the_very_limit(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = await some(caller, 3)
    assert await uuids(caller, limit=3) == (made[::-1], False)
    assert (await uuids(caller, limit=2))[1] is True


async def test_the_default_limit(lone: LoneApi) -> None:
    caller = await lone.caller()
    await some(caller, 26)
    page, has_more = await uuids(caller)
    assert (len(page), has_more) == (25, True)


async def test_the_cursor_of_a_deleted_database_still_works(lone: LoneApi) -> None:
    caller = await lone.caller()
    oldest, middle, newest = await some(caller, 3)
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", middle)
    assert await uuids(caller) == ([newest, oldest], False)
    assert await uuids(caller, starting_after=middle) == ([oldest], False)


async def test_an_unknown_or_foreign_cursor(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    (foreign,) = await some(other, 1)
    for cursor in (foreign, str(uuid4())):
        assert field_of(await caller.get("/databases", params={"starting_after": cursor})) == "starting_after"


async def test_the_databases_of_all_the_callers_teams(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    (own,) = await some(caller, 1)
    (theirs,) = await some(other, 1)
    assert await uuids(caller) == ([own], False)
    await fetch("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", caller.user_id, other.team_id)
    assert await uuids(caller) == ([theirs, own], False)
