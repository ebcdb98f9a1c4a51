"""What a start finds in the stack's own database, and refuses to go on with."""

import msgspec
import pytest

from app.auth.keys import is_key_active
from app.contracts.base import Engine
from app.core.secrets import InvalidSecret, SecretBox, new_key_setting
from app.local.seed import ControlDsns, RemovedHost, SeedHost, seed
from app.store.session import fetch
from tests.servers import RunningServer
from tests.store import releases
from tests.support.answers import data_of
from tests.support.in_process import lone_api
from tests.support.provisioners import postgres_provisioner
from tests.support.proxy import proxy
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


async def test_a_host_that_a_stack_leaves_out_comes_back_as_the_same(
    control_dsn: str, control_admin_dsn: str, postgres_server: RunningServer
) -> None:
    """Wherever it listens then."""
    dsns, box = ControlDsns(admin=control_admin_dsn, service=control_dsn), SecretBox.from_setting(new_key_setting())
    admin = await postgres_provisioner(postgres_server, "seededPassw0rd", "seed_provisioner")
    stays = SeedHost(engine=Engine.POSTGRES, region="us-east-1", admin=admin)
    async with proxy(postgres_server.admin_dsn) as first, proxy(postgres_server.admin_dsn) as second:
        goes, back = (
            SeedHost(engine=Engine.POSTGRES, region="eu-west-1", admin=msgspec.structs.replace(admin, port=way.port))
            for way in (first, second)
        )
        gone = RemovedHost(engine=Engine.POSTGRES, host=admin.host, port=first.port)
        for hosts, absent, found in (
            ((stays, goes), (), {admin.port: True, first.port: True}),
            ((stays,), (gone,), {admin.port: True, first.port: False}),
            ((stays, back), (), {admin.port: True, second.port: True}),
        ):
            await seed(dsns, box, hosts, absent, None)
            async with store(control_dsn):
                rows = await fetch("SELECT port, sick_until IS NULL AS serves FROM engine_hosts")
            assert {row["port"]: row["serves"] for row in rows} == found
