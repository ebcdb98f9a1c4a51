"""The service `hosts`: registers each engine host once, and leaves alone what an operator has decided since."""

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
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
from tests.cli.command import Headwater
from tests.deployment import compose
from tests.servers import RunningServer
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.tls_front import postgres_front, written

_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
_PATIENT = f"""#!{sys.executable}
from app.cli.main import run
from app.store import session
from tests.engines.patience import be_patient
from tests.support.waiting import LIMIT_SECONDS

be_patient()
session.CONNECT_SECONDS = LIMIT_SECONDS
run()
"""
"""The operator's command. On a crowded machine a login may take longer than the command waits for one."""


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


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the service finds its programs."""
    command = tmp_path_factory.mktemp("patient") / "headwater"
    command.write_text(_PATIENT)
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{_PATH}"


@dataclass(frozen=True)
class Place:
    """Where the service would run, with this environment."""

    environ: dict[str, str]
    path: str

    async def register(self, **changed: str) -> subprocess.CompletedProcess[str]:
        # In a thread: what stands before the servers runs here.
        return await asyncio.to_thread(
            subprocess.run,
            ("sh", str(compose.ROOT / "deploy/hosts/register.sh")),
            env={"PATH": self.path, **self.environ, **changed},
            capture_output=True,
            text=True,
            check=False,
        )

    async def headwater(self, *arguments: str) -> Any:
        """What the operator's command says there."""
        settings = {
            name.removeprefix("HEADWATER_"): value
            for name, value in self.environ.items()
            if name.startswith("HEADWATER_")
        }
        return await Headwater(settings).json(*arguments)

    async def hosts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.headwater("hosts", "list")
        return found


@pytest.fixture
async def place(control_dsn: str, admin_dsns: dict[str, str], path: str) -> Place:
    """On a control database of the test's own."""
    ours = {
        "HEADWATER_CONTROL_DSN": control_dsn,
        "HEADWATER_SECRET_KEYS": new_key_setting(),
        "ENGINE_REGION": "us-east-1",
        "ENGINE_PUBLIC_HOST": "db.example.com",
        "POSTGRES_PUBLIC_PORT": "5432",
        "MYSQL_PUBLIC_PORT": "3306",
        **admin_dsns,
    }
    assert set(ours) <= {*compose.services()["hosts"]["environment"]}
    return Place(ours, path)


def _dsn(scheme: str, admin: AdminAddress) -> str:
    return f"{scheme}://{admin.user}:{admin.password}@{admin.host}:{admin.port}"


async def test_each_engine_is_registered_once_under_its_public_address(place: Place) -> None:
    """One that fails at first is tried again, and the other is not lost; what an operator decides since stays."""
    failed = await place.register(MYSQL_ADMIN_DSN="mysql://nobody:nothing@127.0.0.1:1")
    assert failed.returncode != 0
    assert [one["engine"] for one in await place.hosts()] == ["postgres"]
    done = await place.register()
    assert done.returncode == 0, done.stderr
    hosts = await place.hosts()
    assert [(one["engine"], one["region"], one["host"], one["port"]) for one in hosts] == [
        ("postgres", "us-east-1", "db.example.com", 5432),
        ("mysql", "us-east-1", "db.example.com", 3306),
    ]
    assert [(one["tls"], one["ca"]) for one in hosts] == [("verify-full", True)] * 2
    await place.headwater("hosts", "drain", str(hosts[0]["id"]))
    again = await place.register()
    assert again.returncode == 0, again.stderr
    assert [one["draining"] for one in await place.hosts()] == [True, False]


async def test_without_an_authority_tls_is_required_all_the_same(place: Place) -> None:
    assert (await place.register(ENGINE_CA="", MYSQL_ADMIN_DSN="mysql://nobody:nothing@127.0.0.1:1")).returncode != 0
    assert [(one["engine"], one["tls"], one["ca"]) for one in await place.hosts()] == [("postgres", "require", False)]


async def test_while_our_database_is_away_nothing_is_registered(place: Place) -> None:
    away = await place.register(HEADWATER_CONTROL_DSN="postgresql://headwater:x@127.0.0.1:1/headwater")
    assert away.returncode != 0
    assert "registered" not in away.stdout
    assert await place.hosts() == []


async def test_a_list_that_fails_is_not_taken_for_an_empty_one(place: Place, tmp_path: Path) -> None:
    command = tmp_path / "headwater"
    command.write_text(f'#!/bin/sh\ntest "$2" != list || exit 1\nexec {Path(sys.executable).parent}/headwater "$@"\n')
    command.chmod(0o755)
    assert (await place.register(PATH=f"{tmp_path}{os.pathsep}{_PATH}")).returncode != 0
    assert await place.hosts() == []
