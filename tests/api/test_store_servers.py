"""An API whose string names several servers of our own database, the first of which says nothing any more."""

import socket
from urllib.parse import urlsplit, urlunsplit

from app.local.ports import LOOPBACK
from tests.support.service import RunningService


async def test_a_server_that_is_lost_holds_up_no_request(service: RunningService) -> None:
    caller = await service.caller()
    parts = urlsplit(service.control_dsn)
    login, _, server = parts.netloc.rpartition("@")
    with socket.create_server((LOOPBACK, 0)) as silent:
        both = f"{login}@{LOOPBACK}:{silent.getsockname()[1]},{server}"
        dsn = urlunsplit(parts._replace(netloc=both, query="target_session_attrs=read-write"))
        async with service.another_api(CONTROL_DSN=dsn) as (http, _):
            answer = await http.get("/api/v1/databases", headers={"Authorization": f"Bearer {caller.api_key}"})
            assert answer.status_code == 200, answer.text
