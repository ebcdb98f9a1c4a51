"""The measuring of the whole service takes the samples of databases, as the role that owns nothing."""

from tests.quotas.conftest import Operator
from tests.support.answers import data_of
from tests.support.client import Caller


async def test_a_run_of_the_measuring_takes_a_sample(operator: Operator, caller: Caller) -> None:
    made = await caller.created(db_type="postgres")
    path = f"/databases/{made['uuid']}/metrics"
    for _ in range(2):
        await operator.enforce()
    found = data_of(await caller.get(path, params={"step": 60}))
    points = {series["name"]: series["points"] for series in found["series"]}
    assert points["storage_bytes"][-1][1] > 0
    assert points["transactions"]
    assert found["stale_seconds"] < 600
    page = await caller.get(f"/teams/{caller.team_id}/prometheus")
    assert made["uuid"] in page.text
