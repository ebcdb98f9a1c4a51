"""`headwater usage`: the same ledger, of all teams."""

import csv
import io

from app.store.session import execute
from tests.cli.command import Headwater
from tests.support.answers import data_of
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.usage.histories import begin, moment_of, set_clock


async def test_all_teams(lone: LoneApi, control_admin_dsn: str) -> None:
    await begin(control_admin_dsn, moment_of("2027-01-31T21:40:00"))
    callers = [await lone.caller(), await lone.caller()]
    for caller, name in zip(callers, ("one", "two"), strict=True):
        await execute("UPDATE teams SET name = $2 WHERE id = $1", caller.team_id, name)
        await make_active(data_of(await caller.create(), 202)["uuid"])
    await set_clock(moment_of("2027-01-31T22:10:00"))
    headwater = Headwater({"CONTROL_DSN": lone.control_dsn})

    lines = await headwater.json("usage")
    assert [(line["team"], line["runtime_seconds"], line["open"]) for line in lines] == [
        ("one", 1800, True),
        ("two", 1800, True),
    ]
    hours = await headwater.json("usage", "--group-by", "database", "--granularity", "period", "--team", "1")
    assert [(line["team_id"], line["runtime_seconds"]) for line in hours] == [(1, 1200), (1, 600)]
    rows = list(csv.DictReader(io.StringIO(await headwater.text("usage", "--csv"))))
    assert [(row["team_name"], row["runtime_seconds"]) for row in rows] == [("one", "1800"), ("two", "1800")]
    assert "not both" in await headwater.refusal("usage", "--csv", "--json", exit_code=2)
    assert "2 lines" in await headwater.text("usage")
    assert "Expected a date" in await headwater.refusal("usage", "--from", "yesterday")
