"""Event streams: a word at each change, silence else, and an end."""

import asyncio
import dataclasses
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from app.auth.keys import revoke_key
from app.store.session import execute
from tests.operations.conftest import Streaming, api_process
from tests.support.answers import data_of, error_of
from tests.support.event_stream import following
from tests.support.moves import activate
from tests.support.proxy import proxy
from tests.support.waiting import LIMIT_SECONDS, until


async def test_a_word_at_each_change_until_the_end(streaming: Streaming) -> None:
    caller, database, operation = await streaming.created()
    async with following(caller, operation) as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.answer.headers["cache-control"] == "no-store"
        first = await stream.next()
        assert first is not None
        assert (first.name, first.data["status"]) == ("operation", "pending")
        assert first.data == data_of(await caller.get(f"/operations/{operation}"), 200)
        await activate(database)
        last = await stream.next()
        assert last is not None
        assert (last.name, last.data["status"]) == ("operation", "succeeded")
        assert int(last.id) > int(first.id)
        assert last.data == data_of(await caller.get(f"/operations/{operation}"), 200)
        assert await stream.next() is None


async def test_a_comment_while_nothing_happens(streaming: Streaming) -> None:
    caller, _, operation = await streaming.created()
    async with following(caller, operation) as stream:
        await stream.next()
        for _ in range(3):
            await stream.comment()


async def test_who_comes_back_gets_what_changed_since(streaming: Streaming) -> None:
    caller, database, operation = await streaming.created()
    async with following(caller, operation) as stream:
        seen = await stream.next()
        assert seen is not None
    async with following(caller, operation, after=seen.id) as stream:
        await stream.comment()  # it knows that
    await activate(database)
    async with following(caller, operation, after=seen.id) as stream:
        last = await stream.next()
        assert last is not None
        assert last.data["status"] == "succeeded"
        assert await stream.next() is None
    # A 204 tells a browser's EventSource to come back no more.
    answer = await caller.get(f"/operations/{operation}/events", headers={"Last-Event-ID": last.id})
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("after", ["", "x", "-1", "99999999999999999999", "1.5"])
async def test_an_id_that_we_never_gave_is_none(streaming: Streaming, after: str) -> None:
    caller, _, operation = await streaming.created()
    async with following(caller, operation, after=after) as stream:
        assert await stream.next() is not None


async def test_it_is_the_teams_alone(streaming: Streaming) -> None:
    caller, _, operation = await streaming.created()
    stranger = dataclasses.replace(await streaming.lone.caller(), http=streaming.http)
    error_of(await stranger.get(f"/operations/{operation}/events"), 404, "not_found")
    no_reader = await streaming.lone.caller(scopes=("blueprints:read",))
    no_reader = dataclasses.replace(no_reader, http=streaming.http)
    error_of(await no_reader.get(f"/operations/{operation}/events"), 403, "insufficient_scope")
    error_of(await caller.get("/operations/1/events"), 404, "not_found")


async def test_a_revoked_key_ends_its_streams(streaming: Streaming) -> None:
    caller, _, operation = await streaming.created()
    async with following(caller, operation) as stream:
        await stream.next()
        await revoke_key(caller.key_id)
        assert await stream.next() is None


async def test_a_key_that_is_for_other_databases_now_sees_no_more_of_it(streaming: Streaming) -> None:
    caller, database, operation = await streaming.created()
    await execute("UPDATE api_keys SET databases = $2 WHERE id = $1", caller.key_id, [database])
    async with following(caller, operation) as stream:
        await stream.next()
        await execute("UPDATE api_keys SET databases = $2 WHERE id = $1", caller.key_id, [uuid4()])
        assert await stream.next() is None


async def test_a_key_that_is_for_other_networks_now_sees_no_more_of_it(streaming: Streaming) -> None:
    caller, _, operation = await streaming.created()
    await execute("UPDATE api_keys SET allowed_ips = '{127.0.0.1}' WHERE id = $1", caller.key_id)
    async with following(caller, operation) as stream:
        await stream.next()
        await execute("UPDATE api_keys SET allowed_ips = '{192.0.2.0/24}' WHERE id = $1", caller.key_id)
        assert await stream.next() is None


async def test_who_leaves_the_team_sees_no_more_of_it(streaming: Streaming) -> None:
    caller, database, operation = await streaming.created()
    async with following(caller, operation) as stream:
        await stream.next()
        await execute("DELETE FROM memberships WHERE user_id = $1", caller.user_id)
        await activate(database)
        assert await stream.next() is None


async def test_streams_have_bounds_of_their_own(streaming: Streaming, tmp_path: Path) -> None:
    caller, _, operation = await streaming.created()
    other, _, elsewhere = await streaming.created()
    bounds = {"EVENT_STREAMS": "4", "EVENT_STREAMS_PER_KEY": "2", "EVENT_STREAMS_PER_TEAM": "3"}
    async with (
        api_process(tmp_path, streaming.lone.control_dsn, REQUESTS_IN_FLIGHT_PER_KEY="1", **bounds) as (http, _),
        AsyncExitStack() as stack,
    ):
        caller, other = dataclasses.replace(caller, http=http), dataclasses.replace(other, http=http)
        held = [await stack.enter_async_context(following(caller, operation)) for _ in range(2)]
        # They are no requests in flight, of which the key may have one.
        assert (await caller.get("/me")).status_code == 200
        refused = await caller.get(f"/operations/{operation}/events")
        details = error_of(refused, 429, "too_many_streams")["details"]
        assert (details, refused.headers["retry-after"]) == ({"limit": 2}, "5")
        await stack.enter_async_context(following(other, elsewhere))
        await stack.enter_async_context(following(other, elsewhere))
        third = dataclasses.replace(await streaming.lone.caller(), http=http)
        await execute("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", third.user_id, caller.team_id)
        message = error_of(await third.get(f"/operations/{operation}/events"), 429, "too_many_streams")["message"]
        assert message == "One process of the API may have 4 event streams open."
        await held[0].answer.aclose()

        async def room() -> bool:
            async with http.stream(
                "GET", f"/api/v1/operations/{operation}/events", headers={"Authorization": f"Bearer {third.api_key}"}
            ) as answer:
                return answer.status_code == 200

        await until(room)


async def test_a_team_has_a_bound_whatever_the_number_of_its_keys(streaming: Streaming, tmp_path: Path) -> None:
    caller, _, operation = await streaming.created()
    colleague = await streaming.lone.caller()
    await execute("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", colleague.user_id, caller.team_id)
    async with api_process(tmp_path, streaming.lone.control_dsn, EVENT_STREAMS_PER_TEAM="1") as (http, _):
        caller, colleague = dataclasses.replace(caller, http=http), dataclasses.replace(colleague, http=http)
        async with following(caller, operation):
            refused = await colleague.get(f"/operations/{operation}/events")
            assert error_of(refused, 429, "too_many_streams")["message"] == "The team may have 1 event streams open."


async def test_streams_hold_no_connection_to_our_database(streaming: Streaming) -> None:
    """A process has 20; more streams than that leave room for requests."""
    caller, _, operation = await streaming.created()
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(following(caller, operation)) for _ in range(30)]
        await asyncio.gather(*(stream.next() for stream in streams))
        assert (await caller.get("/databases")).status_code == 200


async def test_a_process_that_stops_ends_its_streams_and_another_goes_on(streaming: Streaming, tmp_path: Path) -> None:
    caller, database, operation = await streaming.created()
    async with api_process(tmp_path, streaming.lone.control_dsn, EVENT_STREAM_COMMENT_SECONDS="3600") as (
        http,
        process,
    ):
        async with following(dataclasses.replace(caller, http=http), operation) as stream:
            seen = await stream.next()
            assert seen is not None
            stopping = asyncio.create_task(process.stop(timeout=LIMIT_SECONDS))
            # To its end, and not broken off.
            assert await stream.next() is None
        await stopping
    await activate(database)
    async with following(caller, operation, after=seen.id) as stream:
        last = await stream.next()
        assert last is not None
        assert last.data["status"] == "succeeded"


async def test_a_stream_outlives_an_absence_of_our_database(streaming: Streaming, tmp_path: Path) -> None:
    caller, database, operation = await streaming.created()
    dsn = streaming.lone.control_dsn
    async with (
        proxy(dsn) as way,
        api_process(tmp_path, way.dsn(dsn)) as (http, _),
        following(dataclasses.replace(caller, http=http), operation) as stream,
    ):
        assert await stream.next() is not None
        await way.cut()
        await stream.comment()
        await activate(database)
        await stream.comment()
        await way.restore()
        last = await stream.next()
        assert last is not None
        assert last.data["status"] == "succeeded"


async def test_a_deleted_database_still_has_its_operations(streaming: Streaming) -> None:
    caller, database, operation = await streaming.created()
    here = dataclasses.replace(caller, http=streaming.lone.http)
    async with following(caller, operation) as stream:
        await stream.next()
        data_of(await here.delete(f"/databases/{database}"), 200)
        last = await stream.next()
        assert last is not None
        assert last.data["status"] == "cancelled"
        assert last.data["reason"]["code"] == "database_deleted"
