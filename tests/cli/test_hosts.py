"""`headwater hosts`: registering real servers through administrators that are no superusers."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
import trustme

from app.backups.final import FinalBackups
from app.core.secrets import new_key_setting
from app.engines.base import AdminAddress
from app.local import stack_file
from app.local.ports import LOOPBACK
from app.local.stack_file import StackFile
from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import find_latest
from app.store.session import fetch
from tests.backups.support import TERMS
from tests.cli.command import Headwater
from tests.servers import RunningServer
from tests.support.answers import data_of
from tests.support.in_process import lone_api
from tests.support.lone_pool import lone_pool
from tests.support.moves import events_of, make_active
from tests.support.ports import free_port
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.store import store
from tests.support.tls_front import postgres_front

PASSWORD = "hunter2hunter2"
_END_GRACE = "UPDATE databases SET destroy_at = now() WHERE uuid = $1"


def dsn(admin: AdminAddress, *, scheme: str = "postgresql", password: str | None = None) -> str:
    return f"{scheme}://{admin.user}:{password or admin.password}@{admin.host}:{admin.port}/{admin.database or ''}"


@pytest.fixture
async def admin(postgres_server: RunningServer) -> AdminAddress:
    return await postgres_provisioner(postgres_server, PASSWORD, "cli_provisioner")


async def add(headwater: Headwater, admin_dsn: str, *more: str, engine: str = "postgres") -> Any:
    arguments = ("--engine", engine, "--region", "us-east-1", "--admin-dsn", admin_dsn)
    return await headwater.json("hosts", "add", *arguments, *more)


async def test_a_managed_postgres(headwater: Headwater, admin: AdminAddress, control_dsn: str) -> None:
    added = await add(headwater, dsn(admin))
    assert added.keys() == {"host_id", "flavour", "version", "shortcomings"}
    assert (added["flavour"], added["version"].partition(".")[0]) == ("postgres", "18")
    (host,) = await headwater.json("hosts", "list")
    assert (host["id"], host["engine"], host["region"]) == (added["host_id"], "postgres", "us-east-1")
    assert (host["host"], host["port"], host["capacity"]) == (admin.host, admin.port, 1000)
    assert (host["draining"], host["databases"], host["connections"]) == (False, 0, 0)
    assert 900 < host["connection_capacity"] <= 1000
    async with store(control_dsn):
        (row,) = await fetch("SELECT h::text AS row FROM engine_hosts h")
    assert PASSWORD not in row["row"]
    assert PASSWORD.encode().hex() not in row["row"]


async def test_nothing_is_sealed_with_other_keys_than_the_stack_has(
    headwater: Headwater, admin: AdminAddress, control_dsn: str, tmp_path: Path
) -> None:
    """Which has them from its environment: its folder has none, or those that it had before."""
    kept = tmp_path / "secret-keys"
    stack_file.write(tmp_path, _stack(control_dsn))
    await add(headwater, dsn(admin))
    async with lone_api(control_dsn, secret_keys=headwater.settings["SECRET_KEYS"]) as api:
        made = data_of(await (await api.caller()).create("one", db_type="postgres"), 202)
        await fetch("UPDATE databases SET status = 'active'")
        await fetch(_ADD_USER, uuid4())
    elsewhere = Headwater({"HOME": str(tmp_path)})
    again = ("hosts", "add", "--engine", "postgres", "--region", "us-east-1", "--admin-dsn", dsn(admin))
    sealing = (again, ("databases", "rotate", made["uuid"]), ("databases", "rotate-user", made["uuid"], "app"))
    before = await _sealed(control_dsn)
    assert len(await elsewhere.json("databases", "list")) == 1
    for command in sealing:
        assert "Set HEADWATER_SECRET_KEYS as the service has it" in await elsewhere.refusal(*command)
    assert not kept.exists()
    kept.write_text(new_key_setting("before"))
    for command in sealing:
        assert "sealed with a key that is not configured. Set HEADWATER_" in await elsewhere.refusal(*command)
    assert await _sealed(control_dsn) == before
    kept.write_text(headwater.settings["SECRET_KEYS"])
    assert (await elsewhere.json(*again))["host_id"] == 1


_ADD_USER = """
INSERT INTO database_users (uuid, database_id, name, login_name, access, connection_limit, password_sealed, status)
SELECT $1, id, 'app', 'app', 'read_only', 1, '', 'active' FROM databases
"""


def _stack(control_dsn: str) -> StackFile:
    nowhere = f"{LOOPBACK}:{free_port()}"
    return StackFile(
        api_url=f"http://{nowhere}",
        api_key="",
        temporal_address=nowhere,
        temporal_namespace="default",
        temporal_ui_url=f"http://{nowhere}",
        control_dsn=control_dsn,
        hosts=[],
        processes={},
    )


async def _sealed(control_dsn: str) -> list[Any]:
    """Everything that these commands seal."""
    async with store(control_dsn):
        return [
            *await fetch("SELECT admin_sealed FROM engine_hosts"),
            *await fetch("SELECT next_sealed FROM database_users"),
            *await fetch("SELECT password_sealed, previous_sealed FROM credential_rotations"),
        ]


async def test_extensions_of_the_list(headwater: Headwater, admin: AdminAddress, mysql_server: RunningServer) -> None:
    """This administrator can't make any, and nobody has."""
    made = await mysql_provisioner(mysql_server, PASSWORD, "cli_provisioner")
    listing = headwater.with_settings(POSTGRES_EXTENSIONS="vector,bloom")
    added = await add(listing, dsn(admin))
    assert [told for told in added["shortcomings"] if "lack the extension" in told] == [
        f"New databases lack the extension {name}: the server doesn't have it, or a superuser has yet to make it in "
        "headwater_template: see docs/operating.md."
        for name in ("bloom", "vector")
    ]
    told = (await add(listing, dsn(made, scheme="mysql"), engine="mysql"))["shortcomings"]
    assert not any("extension" in one for one in told)
    hosts = {host["engine"]: host["extensions"] for host in await headwater.json("hosts", "list")}
    assert "citext" in hosts["postgres"]
    assert "vector" not in hosts["postgres"]
    assert hosts["mysql"] == []
    place = f"{admin.host}:{admin.port}"
    assert await _missing(listing) == [f"{place}/bloom", f"{place}/vector"]
    assert await _missing(headwater) == []
    wrong = headwater.with_settings(POSTGRES_EXTENSIONS="vector,dblink")
    assert await _missing(wrong) == ["HEADWATER_POSTGRES_EXTENSIONS"]
    arguments = ("--engine", "postgres", "--region", "us-east-1", "--admin-dsn", dsn(admin))
    assert "dblink: it opens connections" in await wrong.refusal("hosts", "add", *arguments)


async def _missing(headwater: Headwater) -> list[str]:
    checked = json.loads((await headwater.run("check", "--json")).stdout)
    return [one["subject"] for one in checked["violations"] if one["rule"] == "extension_missing"]


async def test_a_mysql(headwater: Headwater, mysql_server: RunningServer) -> None:
    made = await mysql_provisioner(mysql_server, PASSWORD, "cli_provisioner")
    added = await add(headwater, dsn(made, scheme="mysql"), engine="mysql")
    assert added["flavour"] == mysql_server.flavour


async def test_the_public_address_and_the_room(headwater: Headwater, admin: AdminAddress) -> None:
    public = ("--public-host", "db.example.com", "--public-port", "6432")
    await add(headwater, dsn(admin), *public, "--capacity", "7", "--connection-capacity", "70")
    (host,) = await headwater.json("hosts", "list")
    assert (host["host"], host["port"]) == ("db.example.com", 6432)
    assert (host["capacity"], host["connection_capacity"]) == (7, 70)
    text = await headwater.text("hosts", "list")
    assert "db.exam" in text.replace("\n", "")


async def test_how_often_a_connection_is_allocated(headwater: Headwater, admin: AdminAddress) -> None:
    async def allocated() -> tuple[int, int]:
        (host,) = await headwater.json("hosts", "list")
        assert host["connection_room"] == host["connection_capacity"] * host["connection_overcommit"]
        return host["connection_capacity"], host["connection_overcommit"]

    added = await add(headwater, dsn(admin), "--connection-capacity", "70")
    assert await allocated() == (70, 10)
    changed = await headwater.json("hosts", "set", str(added["host_id"]), "--connection-overcommit", "1")
    assert changed == {"host_id": added["host_id"], "connection_overcommit": 1}
    await add(headwater, dsn(admin), "--connection-capacity", "80")
    assert await allocated() == (80, 1)
    await add(headwater, dsn(admin), "--connection-capacity", "80", "--connection-overcommit", "3")
    assert await allocated() == (80, 3)
    assert "1 to 1000" in await headwater.refusal(
        "hosts", "set", str(added["host_id"]), "--connection-overcommit", "1001"
    )
    assert "engine host" in await headwater.refusal("hosts", "set", "4711", "--connection-overcommit", "2")


async def test_what_its_databases_may_take(headwater: Headwater, admin: AdminAddress) -> None:
    async def bound() -> int | None:
        (host,) = await headwater.json("hosts", "list")
        return host["storage_gb"]  # type: ignore[no-any-return]

    id = str((await add(headwater, dsn(admin)))["host_id"])
    assert await bound() is None
    await add(headwater, dsn(admin), "--storage-gb", "500")
    await add(headwater, dsn(admin))
    assert await bound() == 500
    changed = await headwater.json("hosts", "set", id, "--storage-gb", "800", "--connection-overcommit", "2")
    assert changed == {"host_id": int(id), "connection_overcommit": 2, "storage_gb": 800}
    assert await bound() == 800
    await headwater.json("hosts", "set", id, "--storage-gb", "0")
    assert await bound() is None
    assert "--storage-gb" in await headwater.refusal("hosts", "set", id, exit_code=2)


async def test_adding_again_brings_it_up_to_date(headwater: Headwater, admin: AdminAddress) -> None:
    first = await add(headwater, dsn(admin))
    assert await headwater.json("hosts", "drain", str(first["host_id"])) == {
        "host_id": first["host_id"],
        "draining": True,
    }
    assert (await headwater.json("hosts", "list"))[0]["draining"] is True
    again = await add(headwater, dsn(admin), "--capacity", "5")
    assert again["host_id"] == first["host_id"]
    (host,) = await headwater.json("hosts", "list")
    assert (host["capacity"], host["draining"]) == (5, True)
    elsewhere = ("--engine", "postgres", "--region", "eu-west-1", "--admin-dsn", dsn(admin))
    assert "another region" in await headwater.refusal("hosts", "add", *elsewhere)


async def refusal(headwater: Headwater, admin_dsn: str, *more: str, exit_code: int = 1) -> str:
    """And nothing was registered, and no password shown."""
    arguments = ("--engine", "postgres", "--region", "us-east-1", "--admin-dsn", admin_dsn, *more)
    said = await headwater.refusal("hosts", "add", *arguments, exit_code=exit_code)
    assert PASSWORD not in said
    assert await headwater.json("hosts", "list") == []
    return said


async def test_wrong_credentials(headwater: Headwater, admin: AdminAddress) -> None:
    said = await refusal(headwater, dsn(admin, password=f"{PASSWORD}x"))
    assert "can't be used" in said
    assert "cli_provisioner" in said


async def test_nobody_there(headwater: Headwater) -> None:
    said = await refusal(headwater, f"postgresql://u:{PASSWORD}@127.0.0.1:{free_port()}/postgres")
    assert "can't be used" in said


async def test_an_account_that_may_not_provision(headwater: Headwater, postgres_server: RunningServer) -> None:
    connection: Any = await asyncpg.connect(postgres_server.admin_dsn)
    try:
        if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = 'bystander'"):
            await connection.execute(f"CREATE ROLE bystander LOGIN PASSWORD '{PASSWORD}'")
        await connection.execute("GRANT CONNECT ON DATABASE postgres TO bystander")
    finally:
        await connection.close()
    said = await refusal(
        headwater, f"postgresql://bystander:{PASSWORD}@{postgres_server.host}:{postgres_server.port}/postgres"
    )
    assert "CREATEDB" in said or "CREATEROLE" in said


@pytest.mark.parametrize(
    "admin_dsn",
    [
        "",
        "localhost",
        f"mysql://u:{PASSWORD}@localhost/x",
        f"postgresql://:{PASSWORD}@localhost/x",
        f"postgresql://u:{PASSWORD}@/x",
        f"postgresql://u:{PASSWORD}@localhost:port/x",
        f"postgresql://u:{PASSWORD}@localhost:99999/x",
        f"postgresql://u:{PASSWORD}@[::1/x",
    ],
)
async def test_what_is_no_address(headwater: Headwater, admin_dsn: str) -> None:
    await refusal(headwater, admin_dsn, exit_code=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--capacity", "0"), "--capacity"),
        (("--connection-capacity", "0"), "--connection-capacity"),
        (("--public-port", "70000"), "65535"),
    ],
)
async def test_options_that_cannot_be(
    headwater: Headwater, admin: AdminAddress, options: tuple[str, ...], said: str
) -> None:
    assert said in await refusal(headwater, dsn(admin), *options, exit_code=2)


async def test_a_region_that_cannot_be(headwater: Headwater, admin: AdminAddress) -> None:
    assert "region code" in await refusal(headwater, dsn(admin), "--region", "us east")


async def test_without_secret_keys_nothing_is_registered(headwater: Headwater, admin: AdminAddress) -> None:
    keyless = headwater.with_settings(SECRET_KEYS="")
    assert "HEADWATER_SECRET_KEYS" in await refusal(keyless, dsn(admin))


async def test_no_such_host(headwater: Headwater) -> None:
    for command in ("drain", "undrain", "remove"):
        assert "No such engine host" in await headwater.refusal("hosts", command, "404")


async def test_undraining(headwater: Headwater, control_dsn: str) -> None:
    async with lone_pool(control_dsn) as pool:
        host = await pool.api.add_host(draining=True)
        refused = await (await pool.api.caller()).create("early", db_type="postgres")
        assert refused.json()["error"]["code"] == "capacity_exhausted"
    assert await headwater.json("hosts", "undrain", str(host)) == {"host_id": host, "draining": False}
    async with lone_pool(control_dsn) as pool:
        assert (await (await pool.api.caller()).create("late", db_type="postgres")).status_code == 202


async def test_removing_what_is_in_use(headwater: Headwater, control_dsn: str) -> None:
    """First a team's, then its deleted one, then the pool's; nothing of the host changes before it is empty."""
    async with lone_pool(control_dsn) as pool:
        host = await pool.api.add_host()
        caller = await pool.api.caller()
        made = (await caller.create("mine", db_type="postgres")).json()["data"]
        await pool.add_members(1, host)
        await fetch("INSERT INTO findings (host_id, rule, subject, detail) VALUES ($1, 'r', 's', 'd')", host)
    for change, said in (
        ("SELECT 1 FROM databases WHERE uuid = $1", "1 databases of teams, 1 of the warm pool"),
        (
            "UPDATE databases SET status = 'deleted', destroy_at = '2030-01-02' WHERE uuid = $1",
            "until 2030-01-02 00:00Z",
        ),
        ("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", "1 of the warm pool"),
    ):
        async with store(control_dsn):
            await fetch(change, UUID(made["uuid"]))
        assert said in await headwater.refusal("hosts", "remove", str(host))
    assert [line["draining"] for line in await headwater.json("hosts", "list")] == [False]
    async with store(control_dsn):
        await fetch("UPDATE databases SET status = 'deleted', destroyed_at = now()")
    assert await headwater.json("hosts", "remove", str(host)) == {"host_id": host, "removed": True}
    assert await headwater.json("hosts", "list") == []
    async with store(control_dsn):
        assert await fetch("SELECT 1 FROM findings") == []
        assert (await fetch("SELECT admin_sealed FROM engine_hosts"))[0]["admin_sealed"] is None
    # What remembers it stays readable.
    assert (await headwater.json("databases", "inspect", made["uuid"]))["host_id"] == host


async def test_removing_a_lost_host(headwater: Headwater, control_dsn: str) -> None:
    """What is due to be destroyed there is given up with it. A deleted database keeps its grace."""
    async with lone_pool(control_dsn, revocation_timeout_seconds=0.1) as pool:
        host = await pool.api.add_host()
        caller = await pool.api.caller()
        due, kept = [data_of(await caller.create(name, db_type="postgres"), 202)["uuid"] for name in ("due", "kept")]
        for uuid in (due, kept):
            await make_active(uuid)
            await caller.delete(f"/databases/{uuid}")
        await fetch(_END_GRACE, UUID(due))
        await FinalBackups(TERMS).request(UUID(due))
        await pool.add_members(2, host)
    assert await headwater.json("hosts", "evacuate", str(host), "--discard") == []
    refused = await headwater.refusal("hosts", "remove", str(host))
    assert "carries 1 deleted ones" in refused
    assert "pool" not in refused
    async with store(control_dsn):
        assert (await events_of(due))[-1] == "database.destroyed"
        deletion = await find_latest(UUID(due), OperationType.DELETE)
        assert deletion is not None
        assert deletion.status is OperationStatus.SUCCEEDED
        assert [row["status"] for row in await fetch("SELECT status FROM backups")] == ["failed"]
        await fetch(_END_GRACE, UUID(kept))
    await headwater.json("hosts", "evacuate", str(host), "--discard")
    assert await headwater.json("hosts", "remove", str(host)) == {"host_id": host, "removed": True}


async def test_a_removed_host_is_used_for_nothing(headwater: Headwater, control_dsn: str) -> None:
    async with lone_pool(control_dsn) as pool:
        host = str(await pool.api.add_host())
    await headwater.json("hosts", "remove", host)
    async with lone_pool(control_dsn) as pool:
        caller = await pool.api.caller()
        refused = await caller.create("mine", db_type="postgres")
        assert "No host serves postgres" in refused.json()["error"]["message"]
        entries = (await caller.get("/database_types")).json()["data"]
        assert all(not entry["regions"] for entry in entries)
    assert await headwater.json("pool", "status") == []
    chosen = ("--region", "us-east-1", "--engine", "postgres", "--size", "1")
    assert "No host serves" in await headwater.refusal("pool", "set", *chosen)
    nowhere = headwater.with_settings(TEMPORAL_ADDRESS=f"{LOOPBACK}:{free_port()}")
    checked = json.loads((await nowhere.run("check", "--json")).stdout)
    assert [one["rule"] for one in checked["violations"]] == ["temporal_unreachable"]
    for command in ("drain", "undrain", "remove"):
        assert "No such engine host" in await headwater.refusal("hosts", command, host)


async def test_a_removed_host_comes_back(headwater: Headwater, admin: AdminAddress) -> None:
    first = await add(headwater, dsn(admin))
    await headwater.json("hosts", "remove", str(first["host_id"]))
    arguments = ("--engine", "postgres", "--region", "eu-west-1", "--admin-dsn", dsn(admin))
    assert (await headwater.json("hosts", "add", *arguments))["host_id"] == first["host_id"]
    (host,) = await headwater.json("hosts", "list")
    assert (host["region"], host["draining"], host["sick_reason"]) == ("eu-west-1", False, None)


async def test_the_string_comes_from_a_file_or_from_standard_input(
    headwater: Headwater, admin: AdminAddress, tmp_path: Path
) -> None:
    file = tmp_path / "dsn"
    file.write_text(dsn(admin) + "\n")
    options = ("--engine", "postgres", "--region", "us-east-1")
    added = await headwater.json("hosts", "add", *options, "--dsn-file", str(file))
    again = await headwater.json("hosts", "add", *options, "--dsn-file", "-", given=dsn(admin))
    assert again["host_id"] == added["host_id"]


@pytest.mark.parametrize("text", ["", "\n", "two lines\nof it", "x" * 10_000])
async def test_a_file_that_holds_no_string(headwater: Headwater, tmp_path: Path, text: str) -> None:
    file = tmp_path / "dsn"
    file.write_text(text)
    options = ("--engine", "postgres", "--region", "us-east-1", "--dsn-file", str(file))
    assert "--dsn-file" in await headwater.refusal("hosts", "add", *options, exit_code=2)


async def test_one_string_and_no_more(headwater: Headwater, admin: AdminAddress, tmp_path: Path) -> None:
    options = ("--engine", "postgres", "--region", "us-east-1")
    assert "--dsn-file" in await headwater.refusal("hosts", "add", *options, exit_code=2)
    file = tmp_path / "dsn"
    file.write_text(dsn(admin))
    both = ("--admin-dsn", dsn(admin), "--dsn-file", str(file))
    assert "--dsn-file" in await headwater.refusal("hosts", "add", *options, *both, exit_code=2)


async def test_tls_is_kept_with_the_host(headwater: Headwater, admin: AdminAddress, tmp_path: Path) -> None:
    authority, file = trustme.CA(), tmp_path / "ca.pem"
    # As other programs write them: with words around the certificate, and a NUL byte after it.
    file.write_bytes(b"# ours\n" + authority.cert_pem.bytes() + b"\0")

    async def mode() -> tuple[str, bool]:
        (host,) = await headwater.json("hosts", "list")
        return host["tls"], host["ca"]

    async with postgres_front(admin.port, authority.issue_cert(LOOPBACK)) as front:
        there = dsn(admin).replace(f":{admin.port}/", f":{front.port}/")
        public = ("--public-host", "db.example.com", "--public-port", "5432")
        assert "certificate" in await refusal(headwater, there, *public, "--tls", "verify-full")
        await add(headwater, there, *public, "--tls", "verify-full", "--ca", str(file))
        assert await mode() == ("verify-full", True)
        # Added again without a word of it, it keeps its mode.
        await add(headwater, there, *public)
        assert await mode() == ("verify-full", True)
        assert front.plain == 0
        await add(headwater, there, *public, "--tls", "disable")
        assert await mode() == ("disable", False)
        await add(headwater, there, *public, "--ca", str(file))
        assert await mode() == ("verify-full", True)


async def test_a_host_without_tls_is_refused_where_it_is_required(headwater: Headwater, admin: AdminAddress) -> None:
    assert "offers no TLS" in await refusal(headwater, dsn(admin), "--tls", "require")
    assert "offers no TLS" in await refusal(headwater, dsn(admin), "--tls", "verify-full")
    # On the loopback interface nobody is in between.
    await add(headwater, dsn(admin))
    assert (await headwater.json("hosts", "list"))[0]["tls"] == "disable"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("no certificate", (), "not a PEM"),
        (None, ("--tls", "disable"), "no meaning"),
        (None, ("--tls", "prefer"), "prefer"),
    ],
)
async def test_a_policy_that_cannot_be(
    headwater: Headwater, admin: AdminAddress, tmp_path: Path, text: str | None, options: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(trustme.CA().cert_pem.bytes() if text is None else text.encode())
    assert said in await refusal(headwater, dsn(admin), "--ca", str(file), *options, exit_code=2)


async def test_options_in_the_string_are_not_left_unread(headwater: Headwater, admin: AdminAddress) -> None:
    assert "--tls" in await refusal(headwater, dsn(admin) + "?sslmode=verify-full", exit_code=2)
