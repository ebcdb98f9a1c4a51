"""`headwater webhooks`: what waits, and why."""

from app.store.session import fetch
from tests.cli.command import Headwater
from tests.support.in_process import lone_api


async def test_endpoints_for_which_deliveries_wait(headwater: Headwater, control_dsn: str) -> None:
    assert await headwater.json("webhooks", "waiting") == []
    async with lone_api(control_dsn) as api:
        caller = await api.caller()
        hanging, well, idle = [await _endpoint(caller.team_id, name) for name in ("hanging", "well", "idle")]
        for endpoint in (hanging, hanging, well):
            await fetch(
                "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, next_attempt_at, waiting)"
                " VALUES ('msg', $1, 'ping', now(), true)",
                endpoint,
            )
        await fetch("UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = now() WHERE id = $1", hanging)
    shown = await headwater.json("webhooks", "waiting")
    assert [(one["endpoint_id"], one["waiting"], one["hanging"]) for one in shown] == [
        (hanging, 2, True),
        (well, 1, False),
    ]
    assert {one["team_id"] for one in shown} == {caller.team_id}
    assert idle not in [one["endpoint_id"] for one in shown]


async def _endpoint(team: int, name: str) -> int:
    rows = await fetch(
        "INSERT INTO webhook_endpoints (team_id, url) VALUES ($1, $2) RETURNING id", team, f"https://{name}.example/"
    )
    return int(rows[0]["id"])
