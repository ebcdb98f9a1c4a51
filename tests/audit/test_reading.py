"""`GET /api/v1/audit_events`."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.core.clock import utc_now
from app.store.session import execute, fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.store import execute_at
from tests.support.together import together


async def listed(caller: Caller, **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body_of(await caller.get("/audit_events", params=params))["data"]
    return found


async def test_it_lists_what_was_done(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    uuid = data_of(await caller.create("a"), 202)["uuid"]
    await other.create("theirs")
    await caller.patch(f"/databases/{uuid}", {"name": "b"})
    changed, made = await listed(caller)
    assert changed["actor"] == {"kind": "key", "user_id": caller.user_id, "api_key_id": caller.key_id}
    assert changed["subject"] == {"object": "database", "id": uuid}
    assert (changed["action"], changed["outcome"], changed["changes"]) == (
        "database.change",
        "succeeded",
        {"name": ["a", "b"]},
    )
    assert (changed["team_id"], made["action"]) == (caller.team_id, "database.create")


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages(lone: LoneApi, limit: int) -> None:
    caller = await lone.caller()
    for _ in range(5):
        await caller.delete(f"/databases/{uuid4()}")
    everything = [one["id"] for one in await listed(caller)]
    pages: list[int] = []
    while len(pages) < 5:
        after = {"starting_after": pages[-1]} if pages else {}
        page = body_of(await caller.get("/audit_events", params={"limit": limit, **after}))
        pages += [one["id"] for one in page["data"]]
        assert page["has_more"] == (len(pages) < 5)
    assert pages == everything == sorted(everything, reverse=True)


async def test_the_cursor_of_a_neighbour(lone: LoneApi) -> None:
    """It tells nothing, not even between which events of one's own theirs was."""
    caller, other = await lone.caller(), await lone.caller()
    for one in (caller, other, caller):
        await one.delete(f"/databases/{uuid4()}")
    (theirs,) = await listed(other)
    answer = await caller.get("/audit_events", params={"starting_after": theirs["id"]})
    assert field_of(answer) == "starting_after"


async def test_filters(lone: LoneApi) -> None:
    caller = await lone.caller()
    mine = [data_of(await caller.create(name), 202)["uuid"] for name in ("a", "b")]
    await caller.patch(f"/databases/{mine[0]}", {"name": "c"})
    await execute(
        "INSERT INTO audit_events (actor_kind, action, object, subject_id, team_id, outcome)"
        " VALUES ('service', 'database.expire', 'database', $1, $2, 'succeeded')",
        mine[1],
        caller.team_id,
    )
    expired, changed, second, first = await listed(caller)
    for params, expected in (
        ({"actor": f"user:{caller.user_id}"}, [changed, second, first]),
        ({"actor": f"key:{caller.key_id}"}, [changed, second, first]),
        ({"actor": "key:999999"}, []),
        ({"actor": "service"}, [expired]),
        ({"actor": "operator"}, []),
        ({"action": "database.create"}, [second, first]),
        ({"subject": f"database:{mine[0]}"}, [changed, first]),
        ({"subject": f"database:{mine[1]}", "action": "database.expire"}, [expired]),
        ({"from": changed["at"]}, [expired, changed]),
        ({"to": changed["at"]}, [second, first]),
        ({"from": second["at"], "to": changed["at"]}, [second]),
        ({"action": "database.create", "starting_after": second["id"]}, [first]),
    ):
        assert await listed(caller, **params) == expected, params


@together(
    ("query", "field", "told"),
    [
        ("actor=nobody", "actor", "user:ID, key:ID, operator or service"),
        ("actor=user:0", "actor", "user:ID"),
        ("actor=key:x", "actor", "user:ID"),
        ("action=database.explode", "action", "database.create"),
        ("action=", "action", "database.create"),
        ("subject=spaceship:1", "subject", "database:ID"),
        ("subject=database:", "subject", "database:ID"),
        ("subject=database:%00", "subject", "database:ID"),
        ("from=yesterday", "from", "its offset"),
        ("from=2026-11-20T08:00:00", "from", "its offset"),
        ("to=0001-01-01T00:00:00%2B01:00", "to", "its offset"),
        ("from=2026-11-20T08:00:00Z&to=2026-11-20T08:00:00Z", "to", "later"),
        ("starting_after=x", "starting_after", "number"),
        ("starting_after=999999999", "starting_after", "not the id"),
        ("limit=0", "limit", ""),
    ],
)
async def test_filters_that_cannot_be(asking: Caller, query: str, field: str, told: str) -> None:
    answer = await asking.get(f"/audit_events?{query}")
    assert field_of(answer) == field
    assert told in answer.json()["error"]["message"]


async def test_only_what_the_tier_keeps_is_shown(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    for days in (29, 31):
        await execute(
            "INSERT INTO audit_events (at, actor_kind, action, object, team_id, outcome)"
            " VALUES ($1, 'service', 'database.expire', 'database', $2, 'succeeded')",
            utc_now() - timedelta(days=days),
            caller.team_id,
        )
    assert len(await listed(caller)) == 1


async def test_it_takes_the_scope_and_the_role(lone: LoneApi) -> None:
    narrow = await lone.caller(scopes=("databases:*",))
    error_of(await narrow.get("/audit_events"), 403, "insufficient_scope")
    caller = await lone.caller()
    for role, code in (("owner", 200), ("admin", 200), ("member", 403), ("viewer", 403)):
        await execute("UPDATE memberships SET role = $1 WHERE user_id = $2", role, caller.user_id)
        assert (await caller.get("/audit_events")).status_code == code, role


async def test_every_filter_is_read_off_an_index(lone: LoneApi, control_admin_dsn: str) -> None:
    """Of 20,000 events, of which few are asked for, few are looked at."""
    caller = await lone.caller()
    await caller.create("a")
    await execute(
        """
        INSERT INTO audit_events (actor_kind, user_id, api_key_id, action, object, subject_id, team_id, outcome, at)
        SELECT 'key', 999, 999, 'query.execute', 'database', 'other', $1, 'succeeded', now() - n * interval '1 second'
        FROM generate_series(1, 20000) n
        """,
        caller.team_id,
    )
    await execute_at(control_admin_dsn, "ANALYZE audit_events")
    made = (await listed(caller, limit=1))[0]
    for params in (
        {"actor": f"user:{caller.user_id}"},
        {"actor": f"key:{caller.key_id}"},
        {"actor": "operator"},
        {"action": "database.create"},
        {"subject": f"database:{made['subject']['id']}"},
        {"to": (utc_now() - timedelta(hours=5)).isoformat()},
    ):
        before = await _tuples_read()
        await listed(caller, **params)
        await _flushed()
        assert await _tuples_read() - before < 1000, params


async def _tuples_read() -> int:
    await _flushed()
    rows = await fetch(
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint AS n FROM pg_stat_user_tables"
        " WHERE relname LIKE 'audit_events%'"
    )
    return int(rows[0]["n"])


async def _flushed() -> None:
    """Every connection of the pool reports what it has read."""
    await asyncio.gather(*(fetch("SELECT pg_stat_force_next_flush(), pg_sleep(0.02)") for _ in range(20)))
