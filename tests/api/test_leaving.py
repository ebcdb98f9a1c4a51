"""An API that is told to stop serves on for a while and says that it is not ready: a proxy then sends nothing more."""

import os
import signal

from tests.support.service import RunningService
from tests.support.waiting import is_running, until


async def test_it_serves_until_its_proxy_has_noticed(service: RunningService) -> None:
    caller = await service.caller()
    async with service.another_api(API_LEAVE_SECONDS="3600") as (http, process):
        assert (await http.get("/health/ready")).status_code == 200
        os.kill(process.pid, signal.SIGTERM)

        async def says_no() -> bool:
            answer = await http.get("/health/ready")
            return (answer.status_code, answer.json()["status"]) == (503, "leaving")

        await until(says_no)
        headers = {"Authorization": f"Bearer {caller.api_key}"}
        assert (await http.get("/api/v1/databases", headers=headers)).status_code == 200
        assert (await http.get("/health/live")).status_code == 200
        os.kill(process.pid, signal.SIGTERM)
        await until(lambda: not is_running(process.pid))
