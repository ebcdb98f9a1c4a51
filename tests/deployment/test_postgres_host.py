"""A PostgreSQL engine host as the deployment sets it up: its script, its settings, its rules, on a real server.

The tests build on one another: the last one shuts the superuser out.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.core.ids import engine_name
from app.engines.base import EngineLimits, Tenant
from app.engines.hosts import sessions_for_tenants
from app.engines.postgres import PostgresAdapter, readers
from app.engines.querying import QueryLimits
from tests.deployment import compose
from tests.deployment.conftest import PASSWORD, PROVISIONER, DeployedPostgres
from tests.support.waiting import LIMIT_SECONDS, until

_LIMITS = EngineLimits(connections=1000)


def _tenant() -> Tenant:
    name = engine_name()
    return Tenant(name=name, password=f"password{name}", marker=f"headwater:{name}")


async def _login(deployed: DeployedPostgres, tenant: Tenant, **overrides: Any) -> asyncpg.Connection:
    server = deployed.server
    options = {"user": tenant.name, "password": tenant.password, "database": tenant.name} | overrides
    return await asyncpg.connect(host=server.host, port=server.port, timeout=LIMIT_SECONDS, **options)


def test_a_missing_password_is_an_error(deployed_postgres: DeployedPostgres) -> None:
    assert deployed_postgres.provision(password=None).returncode != 0


async def test_its_administrator_is_fit_and_lacks_nothing_but_tls(deployed_postgres: DeployedPostgres) -> None:
    for _ in range(2):
        run = deployed_postgres.provision()
        assert run.returncode == 0, run.stderr
    adapter = PostgresAdapter(deployed_postgres.administrator)
    try:
        assert await adapter.harden_host() == ()
        facts = await adapter.inspect_host()
    finally:
        await adapter.close()
    # The package's server is built without TLS; the image's is not.
    assert [sentence.split(":")[0] for sentence in facts.shortcomings] == ["TLS is off"]
    reserved = int(compose.options(compose.services()["postgres-us-east-1"])["reserved_connections"])
    assert facts.max_connections == sessions_for_tenants(deployed_postgres.connections - 3 - reserved)


async def test_listed_extensions_are_in_the_template(deployed_postgres: DeployedPostgres) -> None:
    adapter = PostgresAdapter(deployed_postgres.administrator)
    try:
        for listed, expected in (("bloom, vector", {"bloom", "vector"}), ("vector", {"vector"}), ("", set())):
            run = deployed_postgres.provision(listed=listed)
            assert run.returncode == 0, run.stderr
            assert {"bloom", "vector"} & set(await adapter.extensions()) == expected
        assert deployed_postgres.provision(listed="vector,dblink").returncode != 0
        assert deployed_postgres.provision().returncode == 0
    finally:
        await adapter.close()


async def test_a_frozen_tenant_of_it_cannot_thaw_itself(deployed_postgres: DeployedPostgres) -> None:
    deployed_postgres.provision()
    adapter, tenant = PostgresAdapter(deployed_postgres.administrator), _tenant()
    await adapter.create(tenant, _LIMITS)
    await adapter.freeze(tenant)
    session = await _login(deployed_postgres, tenant)
    with pytest.raises(asyncpg.DiskFullError, match="over its storage limit"):
        await session.execute("GRANT CREATE ON SCHEMA public TO CURRENT_USER")
    await session.close()
    await adapter.destroy(tenant)
    await adapter.close()


async def test_a_full_host_still_lets_its_administrator_end_a_tenant(deployed_postgres: DeployedPostgres) -> None:
    deployed_postgres.provision()
    adapter, tenant = PostgresAdapter(deployed_postgres.administrator), _tenant()
    await adapter.create(tenant, _LIMITS)
    await adapter.close()
    sessions: list[asyncpg.Connection] = []
    try:
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await _use_up(deployed_postgres, tenant, sessions)
        await adapter.revoke_access(tenant)

        async def all_ended() -> bool:
            return all(session.is_closed() for session in sessions)

        await until(all_ended)
        await adapter.destroy(tenant)
    finally:
        for session in sessions:
            session.terminate()
        await adapter.close()


async def _use_up(deployed: DeployedPostgres, tenant: Tenant, sessions: list[asyncpg.Connection]) -> None:
    while True:
        sessions.append(await _login(deployed, tenant))


@pytest_asyncio.fixture(scope="module")
async def ruled_postgres(deployed_postgres: DeployedPostgres) -> DeployedPostgres:
    """Under the deployment's rules, which shut the superuser out."""
    deployed_postgres.provision()
    await deployed_postgres.use_pg_hba()
    return deployed_postgres


async def test_pg_hba_lets_a_tenant_into_its_own_database_alone(ruled_postgres: DeployedPostgres) -> None:
    adapter, one, other = PostgresAdapter(ruled_postgres.administrator), _tenant(), _tenant()
    try:
        for tenant in (one, other):
            await adapter.create(tenant, _LIMITS)
            await adapter.verify_login(tenant)
        # As if a GRANT had gone wrong: the rules are the wall that holds then.
        owner = await _login(ruled_postgres, one, user=PROVISIONER, password=PASSWORD, database=other.name)
        await owner.execute(f'GRANT CONNECT ON DATABASE "{other.name}" TO PUBLIC')
        await owner.close()
        for database in (other.name, "postgres", "template1"):
            await _refused(ruled_postgres, one, database=database)
        superuser = ruled_postgres.server
        for database in (superuser.user, one.name):
            await _refused(ruled_postgres, one, user=superuser.user, password=superuser.password, database=database)
        for tenant in (one, other):
            await adapter.destroy(tenant)
    finally:
        await adapter.close()


async def test_pg_hba_lets_a_question_in_where_its_tenant_belongs_and_nowhere_else(
    ruled_postgres: DeployedPostgres,
) -> None:
    adapter, one, other = PostgresAdapter(ruled_postgres.administrator), _tenant(), _tenant()
    password, limits = "readerPassw0rd", QueryLimits(seconds=LIMIT_SECONDS, rows=10)
    try:
        for tenant in (one, other):
            await adapter.create_verified(tenant, _LIMITS)
            await adapter.make_reader(tenant, password)
        session = await _login(ruled_postgres, one)
        await session.execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
        await session.close()
        async with adapter.reading(one, password, limits) as reading:
            assert (await reading.read("SELECT n FROM kept")).rows == [{"n": 7}]
        async with adapter.writing(one, limits):
            pass
        reader = {"user": readers.reader_name(one.name), "password": password}
        owner = await _login(ruled_postgres, one, user=PROVISIONER, password=PASSWORD, database=other.name)
        await owner.execute(f'GRANT CONNECT ON DATABASE "{other.name}" TO PUBLIC')
        await owner.close()
        for database in (other.name, "postgres", "template1"):
            await _refused(ruled_postgres, one, **reader, database=database)
        # What lets it in gives it nothing.
        session = await _login(ruled_postgres, one, **reader)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute(f'SET ROLE "{one.name}"')
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute("DROP TABLE kept")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute("INSERT INTO kept VALUES (8)")
        await session.close()
    finally:
        for tenant in (one, other):
            await adapter.destroy(tenant)
        await adapter.close()


async def _refused(deployed: DeployedPostgres, tenant: Tenant, **overrides: Any) -> None:
    with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match=r"pg_hba\.conf rejects"):
        await _login(deployed, tenant, **overrides)


def test_every_way_in_over_the_network_is_encrypted() -> None:
    lines = (compose.ROOT / "deploy/postgres/pg_hba.conf").read_text().splitlines()
    rules = [line.split() for line in lines if line and not line.startswith("#")]
    assert all(rule[0] == "hostssl" or rule[-1] == "reject" for rule in rules if rule[0] != "local")
    assert rules[-1] == ["host", "all", "all", "all", "reject"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the image brings openssl, this machine has none")
def test_the_first_start_makes_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_text("# the image's own\n")
    script = compose.ROOT / "deploy/postgres/certificate.sh"
    subprocess.run(["bash", script], env={"PGDATA": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=True)
    assert (tmp_path / "server.crt").read_text().startswith("-----BEGIN CERTIFICATE")
    assert (tmp_path / "server.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "postgresql.conf").read_text().endswith("ssl = on\n")
