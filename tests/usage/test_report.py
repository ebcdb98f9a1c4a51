"""`GET /usage`: sums of the ledger by groups and spans, as JSON and as CSV."""

import csv
import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from app.store.session import execute
from app.usage import closing
from app.usage.report import Granularity, GroupBy
from app.usage.schemas import UsageView
from app.usage.views import csv_rows
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.usage.histories import KEEP, begin, moment_of, set_clock
from tests.usage.ledger_model import PERIOD

START = moment_of("2027-01-31T21:40:00")
"""20 minutes before a period ends, in the last hours of a month."""
SUMS = ("runtime_seconds", "storage_byte_seconds", "backup_byte_seconds")
HUGE = 2**62


async def _database(caller: Caller, size: int, name: str = "db") -> str:
    uuid: str = data_of(await caller.create(name), 202)["uuid"]
    await make_active(uuid)
    await execute(
        "INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month,"
        " storage_measured_at) SELECT id, now(), $2, false, now()::date, now() FROM databases WHERE uuid = $1",
        UUID(uuid),
        size,
    )
    return uuid


async def _at(moment: str, *, close: bool = False) -> None:
    await set_clock(moment_of(moment))
    if close:
        await closing.close(PERIOD, KEEP)


async def _lines(caller: Caller, **params: Any) -> list[dict[str, Any]]:
    """All pages."""
    lines: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        body = body_of(await caller.get("/usage", params={"from": "2027-01-01", **params, **after}))
        lines += body["data"]
        if not body["has_more"]:
            return lines
        after = {"starting_after": lines[-1]["id"]}


def _sums(lines: list[dict[str, Any]]) -> dict[str, int]:
    sums: Counter[str] = Counter(dict.fromkeys(SUMS, 0))
    for line in lines:
        sums.update({name: int(line[name]) for name in SUMS})
    return dict(sums)


@pytest.fixture
async def callers(lone: LoneApi, control_admin_dsn: str) -> list[Caller]:
    """Of two teams, with two databases each; the first hour is closed, the next one is over, the third is under way."""
    await begin(control_admin_dsn, START)
    made = [await lone.caller(), await lone.caller()]
    for caller in made:
        await _database(caller, 1000)
        await _database(caller, HUGE)
    await _at("2027-01-31T22:00:01", close=True)
    await _at("2027-01-31T23:30:00")
    return made


async def test_periods_closed_and_open(callers: list[Caller]) -> None:
    first, _ = callers
    lines = [line for line in await _lines(first) if line["storage_byte_seconds"] < HUGE]
    assert [(line["starts_at"][11:19], line["ends_at"][11:19], line["open"]) for line in lines] == [
        ("21:00:00", "22:00:00", False),
        ("22:00:00", "23:00:00", True),
        ("23:00:00", "00:00:00", True),
    ]
    assert [line["runtime_seconds"] for line in lines] == [1200, 3600, 1800]
    assert [line["storage_byte_seconds"] for line in lines] == [1_200_000, 3_600_000, 1_800_000]
    assert [line["measured_at"] is None for line in lines] == [True, False, False]


async def test_all_sums_are_equal(callers: list[Caller]) -> None:
    seconds = 2 * (1200 + 3600 + 1800)
    storage = (1000 + HUGE) * seconds // 2
    assert storage > 2**64, "larger than what JSON libraries take for granted"
    for group_by, granularity in product(GroupBy, Granularity):
        lines = await _lines(callers[0], group_by=group_by.value, granularity=granularity.value, limit=2)
        assert _sums(lines) == dict(zip(SUMS, (seconds, storage, 0), strict=True)), (group_by, granularity)


async def test_the_month_turns(callers: list[Caller]) -> None:
    await _at("2027-02-01T02:00:00", close=True)
    lines = await _lines(callers[0], group_by="team", granularity="month")
    assert [(line["starts_at"][:7], line["runtime_seconds"]) for line in lines] == [
        ("2027-01", 2 * (1200 + 7200)),
        ("2027-02", 2 * 7200),
    ]
    [january] = await _lines(callers[0], group_by="team", granularity="total", to="2027-02-01T00:00:00Z")
    assert january["runtime_seconds"] == lines[0]["runtime_seconds"]


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2027-01-31T00:00:00Z", "2027-02-03T00:00:00Z"),
        ("2027-01-31T22:00:00Z", "2027-02-03T05:00:00Z"),
        ("2027-02-01T00:00:00+05:30", "2027-02-02T13:00:00-08:00"),
        ("2027-02-01T03:00:00Z", "2027-02-01T09:00:00Z"),
    ],
    ids=["days", "parts of days", "days elsewhere", "a part of one day"],
)
async def test_whole_days_are_the_sums_of_their_periods(callers: list[Caller], since: str, until: str) -> None:
    await _at("2027-02-03T04:30:00", close=True)
    asked = {"from": since, "to": until}
    expected = _sums(await _lines(callers[0], **asked))
    assert expected["runtime_seconds"] > 0
    for group_by, granularity in product(GroupBy, Granularity):
        lines = await _lines(callers[0], group_by=group_by.value, granularity=granularity.value, **asked)
        assert _sums(lines) == expected, (group_by, granularity)


async def test_whole_days_are_read_as_days(callers: list[Caller]) -> None:
    """Their periods aren't: a month of many databases has millions."""
    await _at("2027-02-03T04:30:00", close=True)
    await execute("UPDATE usage_days SET runtime_seconds = 0")
    asked = {"from": "2027-02-01T00:00:00Z", "to": "2027-02-02T01:00:00Z", "group_by": "team"}
    assert _sums(await _lines(callers[0], **asked, granularity="total"))["runtime_seconds"] == 2 * 3600
    assert _sums(await _lines(callers[0], **asked))["runtime_seconds"] == 2 * 25 * 3600


async def test_a_closed_line_never_changes(callers: list[Caller]) -> None:
    closed = [line for line in await _lines(callers[0]) if not line["open"]]
    await execute("UPDATE database_usage SET storage_bytes = 5")
    await _at("2027-01-31T23:59:59", close=True)
    assert [line for line in await _lines(callers[0]) if not line["open"]][: len(closed)] == closed
    assert closed


async def test_only_ones_own(lone: LoneApi, callers: list[Caller]) -> None:
    first, second = callers
    mine = {line["database_uuid"] for line in await _lines(first)}
    assert len(mine) == 2
    assert not mine & {line["database_uuid"] for line in await _lines(second)}
    assert {line["team_id"] for line in await _lines(first, group_by="team")} == {first.team_id}
    one = sorted(mine)[0]
    narrow = body_of(
        await first.post("/api_keys", {"name": "narrow", "permissions": ["databases:read"], "databases": [one]}), 201
    )
    lines = await _lines(replace(first, api_key=narrow["api_key"]))
    assert {line["database_uuid"] for line in lines} == {one}
    others = await lone.caller(scopes=("webhooks:read",))
    error_of(await others.get("/usage"), 403, "insufficient_scope")


async def test_csv(callers: list[Caller]) -> None:
    first, _ = callers
    await first.patch(f"/databases/{(await _lines(first))[0]['database_uuid']}", {"name": "renamed"})
    answer = await first.get("/usage", params={"from": "2027-01-01"}, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert _sums(rows) == _sums(await _lines(first))
    assert {row["database_name"] for row in rows} == {"renamed", "db"}
    assert {row["open"] for row in rows} == {"true", "false"}


async def test_no_cell_of_the_csv_is_a_formula(lone: LoneApi, control_admin_dsn: str) -> None:
    await begin(control_admin_dsn, START)
    caller = await lone.caller()
    await execute("UPDATE teams SET name = $2 WHERE id = $1", caller.team_id, '=HYPERLINK("http://evil.example/")')
    await _database(caller, 1)
    await _at("2027-01-31T21:50:00")
    answer = await caller.get("/usage", params={"from": "2027-01-01"}, headers={"Accept": "text/csv"})
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert row["team_name"] == '\'=HYPERLINK("http://evil.example/")'


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff20"])
def test_a_cell_that_could_be_a_formula_is_text(first: str) -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    view = UsageView(
        id="",
        starts_at=moment,
        ends_at=moment,
        open=False,
        runtime_seconds=0,
        storage_byte_seconds=Decimal(0),
        backup_byte_seconds=Decimal(0),
        team_name=f"{first}1+1",
    )
    (row,) = csv.DictReader(io.StringIO(csv_rows([], header=True) + csv_rows([view], header=False), newline=""))
    assert row["team_name"] == f"'{first}1+1"


async def test_json_unless_csv_is_preferred(lone: LoneApi) -> None:
    caller = await lone.caller()
    for accept in ("application/json", "*/*", "text/csv;q=0.5, application/json"):
        body_of(await caller.get("/usage", headers={"Accept": accept}))


async def test_what_cannot_be_asked_for(lone: LoneApi, control_admin_dsn: str) -> None:
    caller = await lone.caller()
    await begin(control_admin_dsn, START)
    refused: list[tuple[dict[str, str], str]] = [
        ({"from": "yesterday"}, "from"),
        ({"from": "2027-02-30"}, "from"),
        ({"from": "2027-01-01T00:00:00"}, "from"),
        ({"from": "0001-01-01T00:00:00+14:00"}, "from"),
        ({"from": "1999-01-01", "to": "1999-02-01"}, "from"),
        ({"from": "2025-01-01", "to": "2026-12-01"}, "from"),
        ({"from": "2027-01-02", "to": "2027-01-02"}, "to"),
        ({"from": "2027-01-02", "to": ""}, "to"),
        ({"from": "2030-01-01"}, "from"),
        ({"group_by": "user"}, "group_by"),
        ({"granularity": "hour"}, "granularity"),
        ({"limit": "5001"}, "limit"),
        ({"starting_after": "x"}, "starting_after"),
        ({"starting_after": "2027-01-01/x"}, "starting_after"),
        ({"starting_after": "2027-01-01T00:00:00Z/7\0", "group_by": "team"}, "starting_after"),
    ]
    for params, field in refused:
        assert field_of(await caller.get("/usage", params=params)) == field, params


async def test_moments_in_other_offsets(callers: list[Caller]) -> None:
    from_there = await _lines(callers[0], **{"from": "2027-02-01T00:00:00+02:00"})
    assert {line["starts_at"][11:16] for line in from_there} == {"22:00", "23:00"}
