"""A host's TLS policy holds for every connection to it: administrators', tenants' and readers'."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import trustme

from app.contracts.base import Engine
from app.core.ids import engine_password
from app.engines.base import AdminAddress, EngineAdapter, EngineError, HostUnavailable
from app.engines.querying import QueryLimits
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN, TlsMode, TlsPolicy
from app.local.mysql_data import detect_flavour
from app.local.ports import LOOPBACK
from tests import servers
from tests.engines.harness import LIMITS, new_tenant
from tests.mysql_client import query
from tests.servers import RunningServer
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.tls_front import pem, postgres_front, written

OURS, THEIRS = trustme.CA(), trustme.CA()
PASSWORD = "Provisioner-passw0rd"
ENGINES = ("postgres", "mysql", "oracle")
_LIMITS = QueryLimits(seconds=10, rows=10)
REQUIRE = TlsPolicy(mode=TlsMode.REQUIRE)
OF_OURS = TlsPolicy(mode=TlsMode.REQUIRE, ca=pem(OURS))
FULL = TlsPolicy(mode=TlsMode.VERIFY_FULL, ca=pem(OURS))


@dataclass(frozen=True)
class TlsHost:
    """Servers of one engine: with a certificate for the loopback address, for another name, and without any."""

    engine: Engine
    good: AdminAddress
    misnamed: AdminAddress
    plain: AdminAddress
    roots: tuple[RunningServer, ...] = ()
    """Of `good` and `plain`, on MySQL."""


@pytest_asyncio.fixture(scope="module", params=ENGINES, loop_scope="session")
async def tls_host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_server: RunningServer
) -> AsyncIterator[TlsHost]:
    if request.param == "postgres":
        admin = await postgres_provisioner(postgres_server, PASSWORD, "tls_provisioner")
        async with (
            postgres_front(admin.port, OURS.issue_cert(LOOPBACK)) as good,
            postgres_front(admin.port, OURS.issue_cert("elsewhere.example")) as misnamed,
            postgres_front(admin.port, None) as plain,
        ):
            fronts = [msgspec.structs.replace(admin, port=front.port) for front in (good, misnamed, plain)]
            yield TlsHost(Engine.POSTGRES, fronts[0], fronts[1], fronts[2])
            return
    program = servers.machine_mysqld() if request.param == "mysql" else await servers.oracle_mysqld()
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    async with (
        mysql_of(program, folder / "good", OURS, LOOPBACK) as good_server,
        mysql_of(program, folder / "misnamed", OURS, "elsewhere.example") as misnamed_server,
        mysql_of(program, folder / "plain", None, "") as plain_server,
    ):
        all_of_them = (good_server, misnamed_server, plain_server)
        admins = [await mysql_provisioner(server, PASSWORD) for server in all_of_them]
        yield TlsHost(Engine.MYSQL, admins[0], admins[1], admins[2], (good_server, plain_server))


@asynccontextmanager
async def mysql_of(program: Path, folder: Path, ca: trustme.CA | None, name: str) -> AsyncIterator[RunningServer]:
    if ca is not None:
        files = await asyncio.to_thread(written, ca, folder, name)
        options = [f"--ssl-ca={files['ca']}", f"--ssl-cert={files['cert']}", f"--ssl-key={files['key']}"]
    else:
        options = ["--skip-ssl"] if await detect_flavour(program) == "mariadb" else ["--tls-version="]
    async with servers.mysql(folder / "server", program, *options) as server:
        yield server


@asynccontextmanager
async def opened(host: TlsHost, address: AdminAddress, policy: TlsPolicy) -> AsyncIterator[EngineAdapter]:
    adapter = open_adapter(host.engine, msgspec.structs.replace(address, tls=policy))
    try:
        yield adapter
    finally:
        await adapter.close()


@pytest.mark.parametrize("policy", [OF_OURS, FULL])
async def test_every_way_in_works_under_a_verified_policy(tls_host: TlsHost, policy: TlsPolicy) -> None:
    tenant, reader = new_tenant(), engine_password()
    async with opened(tls_host, tls_host.good, policy) as adapter:
        await adapter.harden_host()
        await adapter.inspect_host()
        await adapter.create_verified(tenant, LIMITS)
        try:
            await adapter.log_in(tenant)
            await adapter.make_reader(tenant, reader)
            async with adapter.reading(tenant, reader, _LIMITS) as session:
                assert (await session.read("SELECT 1")).rows
            async with adapter.writing(tenant, _LIMITS):
                pass
            async with adapter.script_session(tenant, 10):
                pass
        finally:
            await adapter.destroy(tenant)


@pytest.mark.parametrize(
    ("which", "policy", "said"),
    [
        ("good", TlsPolicy(mode=TlsMode.VERIFY_FULL), "certificate isn't accepted"),
        ("good", TlsPolicy(mode=TlsMode.VERIFY_FULL, ca=pem(THEIRS)), "certificate isn't accepted"),
        ("good", TlsPolicy(mode=TlsMode.REQUIRE, ca=pem(THEIRS)), "certificate isn't accepted"),
        ("misnamed", FULL, "certificate isn't accepted: (Hostname|IP address) mismatch"),
        ("plain", REQUIRE, "offers no TLS"),
        ("plain", OF_OURS, "offers no TLS"),
        ("plain", FULL, "offers no TLS"),
    ],
)
async def test_what_a_policy_does_not_allow_is_refused(
    tls_host: TlsHost, which: str, policy: TlsPolicy, said: str
) -> None:
    address: AdminAddress = getattr(tls_host, which)
    tenant = new_tenant()
    async with opened(tls_host, address, policy) as adapter:
        for way in (adapter.inspect_host(), adapter.log_in(tenant), adapter.create(tenant, LIMITS)):
            with pytest.raises(HostUnavailable, match=said):
                await way
        for session in (adapter.reading(tenant, "x", _LIMITS), adapter.script_session(tenant, 5)):
            with pytest.raises(HostUnavailable, match=said):
                await session.__aenter__()


async def test_a_ca_without_names_takes_any_name(tls_host: TlsHost) -> None:
    async with opened(tls_host, tls_host.misnamed, OF_OURS) as adapter:
        await adapter.inspect_host()


async def test_what_was_registered_before_goes_on(tls_host: TlsHost) -> None:
    for address in (tls_host.good, tls_host.plain):
        async with opened(tls_host, address, TlsPolicy(mode=TlsMode.PREFER)) as adapter:
            await adapter.inspect_host()


async def test_an_unproven_server_never_gets_the_password(tls_host: TlsHost) -> None:
    """MySQL wants it at an account's first login, which is why it needs verified TLS; the others want a proof."""
    for number, (address, policy) in enumerate(((tls_host.good, REQUIRE), (tls_host.plain, PLAIN))):
        async with opened(tls_host, address, policy) as adapter:
            if not tls_host.roots or tls_host.roots[number].flavour == "mariadb":
                await adapter.inspect_host()
                continue
            # Set again, it isn't what the server remembers as proven.
            await query(tls_host.roots[number], f"ALTER USER '{address.user}'@'{LOOPBACK}' IDENTIFIED BY '{PASSWORD}'")
            with pytest.raises(EngineError, match="asks for the password itself"):
                await adapter.inspect_host()


async def test_the_authority_that_mysql_makes_itself_can_be_kept(oracle_mysql_server: RunningServer) -> None:
    # The server ends it with a NUL byte, which no text of PostgreSQL's holds.
    made = oracle_mysql_server.tls.ca
    assert made
    assert made.startswith("-----BEGIN CERTIFICATE-----\n")
    assert made.endswith("\n-----END CERTIFICATE-----\n")
