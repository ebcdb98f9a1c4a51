"""What a start finds in the stack's own database, and refuses to go on with."""

import pytest

from app.auth.keys import is_key_active
from app.core.secrets import InvalidSecret, SecretBox, new_key_setting
from app.local.seed import ControlDsns, seed
from tests.servers import RunningServer
from tests.store import releases
from tests.support.answers import data_of
from tests.support.in_process import lone_api
from tests.support.store import new_database, service_dsn, store


async def test_the_database_of_a_release_moves_and_gets_the_services_role(control_server: RunningServer) -> None:
    admin = await new_database(control_server.admin_dsn)
    releases.load(admin, releases.releases()[-1])
    dsns = ControlDsns(admin=admin, service=service_dsn(admin))
    key = await seed(dsns, SecretBox.from_setting(releases.SECRET_KEYS), [], [], None)
    async with store(dsns.service):
        assert await is_key_active(key)


async def test_a_secret_key_that_was_taken_away(control_dsn: str, control_admin_dsn: str) -> None:
    dsns = ControlDsns(admin=control_admin_dsn, service=control_dsn)
    before, other = new_key_setting("k1"), new_key_setting("k2")
    async with lone_api(control_dsn, secret_keys=before) as api:
        await api.add_host()
        data_of(await (await api.caller()).create(), 202)
    with pytest.raises(InvalidSecret, match="not configured"):
        await seed(dsns, SecretBox.from_setting(other), [], [], None)
    rotated = SecretBox.from_setting(f"{other},{before}")
    assert (await seed(dsns, rotated, [], [], None)).startswith("pk_live_")
