"""The service `hosts`: registers each engine host once, and leaves alone what an operator has decided since."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import trustme

from app.core.secrets import new_key_setting
from app.engines.base import AdminAddress
from app.local.ports import LOOPBACK
from tests import servers
from tests.deployment import compose
from tests.servers import RunningServer
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.store import migrated_database
from tests.support.tls_front import postgres_front, written

_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
Run = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]


@pytest_asyncio.fixture(scope="module")
async def admin_dsns(
    postgres_server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, str]]:
    """Of lesser administrators, in the form of the compose file, on servers with a certificate of the installation's
    own authority."""
    authority, folder = trustme.CA(), tmp_path_factory.mktemp("registered")
    files = await asyncio.to_thread(written, authority, folder / "certificate", LOOPBACK)
    options = [f"--ssl-ca={files['ca']}", f"--ssl-cert={files['cert']}", f"--ssl-key={files['key']}"]
    postgres = await postgres_provisioner(postgres_server, "postgresPassw0rd", "deployment_provisioner")
    async with (
        postgres_front(postgres.port, authority.issue_cert(LOOPBACK)) as front,
        servers.mysql(folder / "server", servers.machine_mysqld(), *options) as mysql_server,
    ):
        mysql = await mysql_provisioner(mysql_server, "mysqlPassw0rd", "deployment_provisioner")
        yield {
            "POSTGRES_ADMIN_DSN": _dsn("postgresql", msgspec.structs.replace(postgres, port=front.port)) + "/postgres",
            "MYSQL_ADMIN_DSN": _dsn("mysql", mysql),
            "ENGINE_CA": base64.b64encode(authority.cert_pem.bytes()).decode(),
        }


@pytest.fixture
async def run(control_server: RunningServer, admin_dsns: dict[str, str]) -> Run:
    """Runs a command where the service would run, on a control database of the test's own."""
    ours = {
        "HEADWATER_CONTROL_DSN": await migrated_database(control_server.admin_dsn),
        "HEADWATER_SECRET_KEYS": new_key_setting(),
        "ENGINE_REGION": "us-east-1",
        "ENGINE_PUBLIC_HOST": "db.example.com",
        "POSTGRES_PUBLIC_PORT": "5432",
        "MYSQL_PUBLIC_PORT": "3306",
        **admin_dsns,
    }
    assert set(ours) <= {*compose.services()["hosts"]["environment"]}

    async def call(*argv: str, **changed: str) -> subprocess.CompletedProcess[str]:
        # In a thread: what stands before the servers runs here.
        return await asyncio.to_thread(
            subprocess.run,
            argv,
            env={"PATH": _PATH, **ours, **changed},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return call


def _dsn(scheme: str, admin: AdminAddress) -> str:
    return f"{scheme}://{admin.user}:{admin.password}@{admin.host}:{admin.port}"


async def _register(run: Run, **changed: str) -> subprocess.CompletedProcess[str]:
    return await run("sh", str(compose.ROOT / "deploy/hosts/register.sh"), **changed)


async def _hosts(run: Run) -> list[dict[str, Any]]:
    listed = await run("headwater", "hosts", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    hosts: list[dict[str, Any]] = json.loads(listed.stdout)
    return hosts


async def test_it_registers_both_engines_under_their_public_address(run: Run) -> None:
    done = await _register(run)
    assert done.returncode == 0, done.stderr
    assert [(one["engine"], one["region"], one["host"], one["port"]) for one in await _hosts(run)] == [
        ("postgres", "us-east-1", "db.example.com", 5432),
        ("mysql", "us-east-1", "db.example.com", 3306),
    ]
    assert [(one["tls"], one["ca"]) for one in await _hosts(run)] == [("verify-full", True)] * 2


async def test_without_an_authority_tls_is_required_all_the_same(run: Run) -> None:
    assert (await _register(run, ENGINE_CA="", MYSQL_ADMIN_DSN="mysql://nobody:nothing@127.0.0.1:1")).returncode != 0
    assert [(one["engine"], one["tls"], one["ca"]) for one in await _hosts(run)] == [("postgres", "require", False)]


async def test_a_host_that_is_draining_goes_on_draining(run: Run) -> None:
    await _register(run)
    drained = (await _hosts(run))[0]
    assert (await run("headwater", "hosts", "drain", str(drained["id"]))).returncode == 0
    again = await _register(run)
    assert again.returncode == 0, again.stderr
    assert [one["draining"] for one in await _hosts(run)] == [True, False]


async def test_one_host_that_fails_is_tried_again_and_the_other_is_not_lost(run: Run) -> None:
    failed = await _register(run, MYSQL_ADMIN_DSN="mysql://nobody:nothing@127.0.0.1:1")
    assert failed.returncode != 0
    assert [one["engine"] for one in await _hosts(run)] == ["postgres"]
    assert (await _register(run)).returncode == 0
    assert [one["engine"] for one in await _hosts(run)] == ["postgres", "mysql"]


async def test_while_our_database_is_away_nothing_is_registered(run: Run) -> None:
    away = await _register(run, HEADWATER_CONTROL_DSN="postgresql://headwater:x@127.0.0.1:1/headwater")
    assert away.returncode != 0
    assert "registered" not in away.stdout
    assert await _hosts(run) == []


async def test_a_list_that_fails_is_not_taken_for_an_empty_one(run: Run, tmp_path: Path) -> None:
    command = tmp_path / "headwater"
    command.write_text(f'#!/bin/sh\ntest "$2" != list || exit 1\nexec {Path(sys.executable).parent}/headwater "$@"\n')
    command.chmod(0o755)
    assert (await _register(run, PATH=f"{tmp_path}{os.pathsep}{_PATH}")).returncode != 0
    assert await _hosts(run) == []
