"""The whole stack, as its operator starts, disturbs, kills and starts it again."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import httpx
import msgspec
import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.local.ports import LOOPBACK
from app.local.stack_file import StackFile
from tests import servers
from tests.console.browser import chromium
from tests.local.stack_process import UP, WITHOUT_MYSQL, StackProcess
from tests.support.metrics import scrape
from tests.support.waiting import LIMIT_SECONDS, until

PARTS = ("control-postgres", "postgres-us-east-1", "mysql-us-east-1", "temporal", "api", "worker")
LOG_BYTES = 50_000


@pytest_asyncio.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StackProcess]:
    servers.machine_mysqld()
    stack = StackProcess(tmp_path_factory.mktemp("stack") / "home", (*UP, "--json"), LOG_FILE_BYTES=str(LOG_BYTES))
    try:
        await stack.start()
        yield stack
    finally:
        await stack.stop()


async def test_the_first_database_in_the_browser(running: StackProcess) -> None:
    """From the link that the stack has printed."""
    link = re.search(r"http://\S+/console/sign-in#\S+", running.output)
    assert link is not None
    async with asyncio.timeout(LIMIT_SECONDS), chromium() as browser:
        page = await browser.new_page()
        page.set_default_timeout(60_000)
        await page.goto(link[0])
        await page.get_by_role("link", name="New database").click()
        await page.get_by_label("Name").fill("first")
        await page.get_by_role("button", name="Create database").click()
        await page.get_by_role("heading", name="first", exact=True).wait_for()
        await page.locator("main").get_by_text("active", exact=True).first.wait_for()
        token = link[0].partition("#")[2]
        assert token not in page.url
    logs = [*(running.home / "logs").glob("*.log")]
    assert len(logs) >= len(PARTS)
    assert not [log.name for log in logs if token in log.read_text(errors="replace")]
    async with httpx.AsyncClient(base_url=running.stack.api_url, timeout=LIMIT_SECONDS) as http:
        headers = {"Authorization": f"Bearer {running.stack.api_key}"}
        listed = (await http.get("/api/v1/databases", headers=headers)).json()["data"]
        assert [(item["name"], item["status"]) for item in listed] == [("first", "active")]


async def test_a_ready_stack_serves(running: StackProcess) -> None:
    stack = running.stack
    assert stat.S_IMODE((running.home / "stack.json").stat().st_mode) == 0o600
    assert sorted(stack.processes) == sorted(PARTS)
    assert await running.health() == 200
    assert [(host.engine, host.region) for host in stack.hosts] == [
        (Engine.POSTGRES, "us-east-1"),
        (Engine.MYSQL, "us-east-1"),
    ]
    assert stack.hosts[1].flavour in ("mysql", "mariadb")
    (printed,) = [line for line in running.output.splitlines() if line.startswith("{")]
    assert msgspec.json.decode(printed, type=StackFile) == stack
    for_people = running.output.replace(printed, "")
    assert stack.api_key in for_people
    assert stack.api_url in for_people
    async with httpx.AsyncClient(timeout=LIMIT_SECONDS) as http:
        pages = re.findall(r"http://\S+/metrics", running.output)
        assert len(pages) == 2
        for page in pages:
            assert (await scrape(http, page)).value("headwater_store_up") == 1


async def test_no_log_outgrows_its_bound(running: StackProcess) -> None:
    """Of our own processes and of servers that know nothing of it; each goes on writing, and what it wrote is kept."""
    marks = {"api": "request", "control-postgres": "password authentication failed"}
    names = iter(range(10_000))

    async def write_more() -> bool:
        async with httpx.AsyncClient(base_url=running.stack.api_url, timeout=LIMIT_SECONDS) as http:
            for _ in range(50):
                await http.get("/health/live")
        dsn = urlsplit(running.stack.control_dsn)
        for _ in range(50):
            with contextlib.suppress(asyncpg.InvalidPasswordError):
                await asyncpg.connect(host=dsn.hostname, port=dsn.port, user=f"nobody{next(names)}", password="x")
        return all((running.home / "logs" / f"{name}.log.1").exists() for name in marks)

    # A log of an earlier run would be there already, and prove nothing.
    assert not list((running.home / "logs").glob("*.log.1"))
    await until(write_more)
    for name, mark in marks.items():
        log, before = (running.home / "logs" / f"{name}{ending}" for ending in (".log", ".log.1"))
        assert before.stat().st_size > LOG_BYTES

        assert mark in before.read_text()

        async def goes_on(log: Path = log, mark: str = mark) -> bool:
            await write_more()
            text = log.read_text()  # noqa: ASYNC240 - 50 KB
            assert "\x00" not in text
            return len(text) <= LOG_BYTES and mark in text

        await until(goes_on)


async def test_the_key_in_stack_json_is_stored_as_a_hash_of_a_pro_team(running: StackProcess) -> None:
    rows = await _fetch(
        running.stack.control_dsn,
        """
        SELECT k.requests_per_minute, k.scopes, t.tier FROM api_keys k
        JOIN memberships m ON m.user_id = k.user_id JOIN teams t ON t.id = m.team_id
        WHERE k.hash = sha256(convert_to($1, 'UTF8'))
        """,
        running.stack.api_key,
    )
    assert [(row["requests_per_minute"], row["tier"]) for row in rows] == [(100_000, "pro")]
    assert {"databases:*", "databases:write", "queries:write", "webhooks:write"} <= set(rows[0]["scopes"])


async def test_the_service_is_no_superuser_of_its_hosts(running: StackProcess) -> None:
    admin_dsn = running.stack.hosts[0].admin_dsn
    rows = await _fetch(
        admin_dsn,
        "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = 'headwater_provisioner'",
    )
    assert [tuple(row) for row in rows] == [(False, True, True)]
    registered = await _fetch(running.stack.control_dsn, "SELECT engine, port FROM engine_hosts ORDER BY id")
    assert [tuple(row) for row in registered] == [(host.engine, host.port) for host in running.stack.hosts]
    opened = await _fetch(
        admin_dsn,
        "SELECT datname FROM pg_database WHERE datallowconn AND has_database_privilege('public', oid, 'CONNECT')",
    )
    assert opened == []


async def test_a_second_stack_on_the_same_home_is_refused(running: StackProcess) -> None:
    before = running.stack
    second = StackProcess(running.home)
    assert await second.run() == 1
    assert "runs in" in second.output
    assert before.api_url in second.output
    assert running.stack == before
    assert await running.health() == 200


@pytest.mark.parametrize("part", PARTS)
async def test_a_killed_part_comes_back(running: StackProcess, part: str) -> None:
    before = running.stack
    os.kill(before.processes[part][0], signal.SIGKILL)
    await until(lambda: running.stack.processes[part] != before.processes[part])
    after = running.stack
    assert {name: pids for name, pids in after.processes.items() if name != part} == {
        name: pids for name, pids in before.processes.items() if name != part
    }
    assert (after.api_url, after.hosts) == (before.api_url, before.hosts), "it listens where it did"
    assert f"{part} was killed by signal 9" in running.output


async def test_stack_json_that_cannot_be_written_is_written_later(running: StackProcess) -> None:
    """And nothing ends meanwhile."""
    before, part = running.stack.processes, "postgres-us-east-1"
    pid = (running.home / "lock").read_text()
    in_the_way = running.home / f".stack.json.{pid}"
    in_the_way.mkdir()
    os.kill(before[part][0], signal.SIGKILL)
    await until(lambda: "stack.json is out of date, because it can't be written: Is a directory" in running.output)
    assert running.stack.processes == before
    assert await running.health() == 200
    in_the_way.rmdir()
    await until(lambda: running.stack.processes[part] != before[part])
    assert {name for name, pids in running.stack.processes.items() if pids != before[name]} == {part}


async def test_a_log_is_kept_from_filling_the_disk(running: StackProcess) -> None:
    log = running.home / "logs" / "temporal.log"
    os.truncate(log, 65 * 2**20)
    await until(lambda: log.stat().st_size < 2**20)
    assert await running.health() == 200


async def test_nothing_survives_a_killed_stack_and_the_next_has_its_data(running: StackProcess) -> None:
    """The last one of this stack: it ends."""
    before = running.stack
    await _execute(before.hosts[0].admin_dsn, "CREATE TABLE kept AS SELECT 1 AS one")
    await running.stop(signal.SIGKILL)
    await until(lambda: running.survivors() == [])

    await running.start()
    after = running.stack
    assert after.api_key == before.api_key
    for host, same in zip(before.hosts, after.hosts, strict=True):
        # Another stack on this machine may have taken its port in between.
        assert host == same or f"port {host.port} is taken" in running.output
    assert await running.health() == 200
    assert [tuple(row) for row in await _fetch(after.hosts[0].admin_dsn, "SELECT one FROM kept")] == [(1,)]
    assert len(await _fetch(after.control_dsn, "SELECT 1 FROM engine_hosts")) == 2
    assert await running.stop(signal.SIGINT) == 0
    assert running.survivors() == []
    assert not (running.home / "stack.json").exists()


@dataclass(frozen=True)
class FirstRun:
    """Of a stack without MySQL, on whose preferred port somebody else listened. It has stopped."""

    home: Path
    taken: int
    stack: StackFile
    output: str
    health: int

    def again(self, folder: Path, **settings: str) -> StackProcess:
        """Another, on a copy of what it left."""
        subprocess.run(["cp", "-a", self.home, folder / "home"], check=True)
        return StackProcess(folder / "home", WITHOUT_MYSQL, **settings)


@pytest_asyncio.fixture(scope="module")
async def first_run(tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        home = tmp_path_factory.mktemp("first") / "home"
        running = StackProcess(home, WITHOUT_MYSQL, API_PORT=str(taken))
        try:
            await running.start()
            return FirstRun(home, taken, running.stack, running.output, await running.health())
        finally:
            await running.stop()


def test_a_taken_port_and_a_missing_mysql_are_lived_with(first_run: FirstRun) -> None:
    assert not first_run.stack.api_url.endswith(f":{first_run.taken}")
    assert f"port {first_run.taken} is taken" in first_run.output
    assert [host.engine for host in first_run.stack.hosts] == [Engine.POSTGRES]
    assert "runs with PostgreSQL alone" in first_run.output
    assert first_run.health == 200


async def test_a_host_whose_port_was_taken_meanwhile_keeps_its_registration(
    first_run: FirstRun, tmp_path: Path
) -> None:
    """Also after a start that was broken off when it had moved the host."""
    before = first_run.stack.hosts[0]
    # Its worker speaks TLS to Temporal, which doesn't: this start never comes to its end.
    broken_off = first_run.again(tmp_path, TEMPORAL_TLS="true")
    with socket.create_server((LOOPBACK, before.port)):
        try:
            await broken_off.start(line="worker: waiting for its first poll")
        finally:
            await broken_off.stop(signal.SIGKILL)
    assert not (broken_off.home / "stack.json").exists()
    stack = StackProcess(broken_off.home, WITHOUT_MYSQL)
    try:
        await stack.start()
        assert stack.stack.hosts[0].port != before.port
        registered = await _fetch(stack.stack.control_dsn, "SELECT id, port FROM engine_hosts")
        assert [tuple(row) for row in registered] == [(1, stack.stack.hosts[0].port)]
    finally:
        await stack.stop()


async def test_what_the_last_stack_served_and_this_one_does_not(first_run: FirstRun, tmp_path: Path) -> None:
    both = first_run.again(tmp_path, REGIONS="us-east-1,eu-west-1", POOL_SIZE="1")
    one = StackProcess(both.home, WITHOUT_MYSQL, POOL_SIZE="1")
    try:
        await both.start()
        assert await _regions(both) == ["eu-west-1", "us-east-1"]
        await until(lambda: _pools_are_full(both))
        before = both.stack.hosts
        await both.stop()
        await one.start()
        assert await _regions(one) == ["us-east-1"]
        asked = await _create(one, "eu-west-1")
        assert (asked.status_code, asked.json()["error"]["details"]) == (422, {"field": "region"})
        assert [(await _create(one, None)).json()["data"]["region"] for _ in range(2)] == ["us-east-1"] * 2
    finally:
        await one.stop()
        await both.stop()
    # One is back, and the first is replaced.
    next_ones = StackProcess(both.home, WITHOUT_MYSQL, REGIONS="ap-south-1,eu-west-1")
    try:
        await next_ones.start()
        assert await _regions(next_ones) == ["ap-south-1", "eu-west-1"]
        again = next_ones.stack.hosts[1]
        # Another stack on this machine may have taken its port in between.
        assert again == before[1] or f"port {before[1].port} is taken" in next_ones.output
    finally:
        await next_ones.stop()


async def test_a_stack_whose_reader_has_gone_stops_well(tmp_path: Path) -> None:
    """As with `make up 2>&1 | tee log`: Ctrl-C ends `tee` too."""
    pipe, said = tmp_path / "pipe", bytearray()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def is_ready() -> bool:
        with contextlib.suppress(BlockingIOError):
            said.extend(os.read(reader, 65_536))
        return b"Headwater is ready" in said

    stack = StackProcess(tmp_path / "home", WITHOUT_MYSQL, output=str(pipe))
    try:
        await stack.spawn()
        await until(is_ready)
        os.close(reader)
        assert await stack.stop(signal.SIGINT) == 0
        assert stack.survivors() == []
        assert not (stack.home / "stack.json").exists()
    finally:
        await stack.stop()


async def test_a_given_mysqld_that_is_missing_is_an_error(tmp_path: Path) -> None:
    stack = StackProcess(tmp_path / "home", MYSQLD="/nonexistent/mysqld")
    assert await stack.run() == 1
    assert "HEADWATER_MYSQLD names /nonexistent/mysqld" in stack.output


async def test_unknown_settings_are_an_error(tmp_path: Path) -> None:
    stack = StackProcess(tmp_path / "home", REGION="us-east-1")
    assert await stack.run() == 1
    assert "HEADWATER_REGION: no such setting" in stack.output


async def _pools_are_full(stack: StackProcess) -> bool:
    ready = "SELECT 1 FROM databases WHERE team_id IS NULL AND status = 'active'"
    return len(await _fetch(stack.stack.control_dsn, ready)) == 2


async def _regions(stack: StackProcess) -> list[str]:
    headers = {"Authorization": f"Bearer {stack.stack.api_key}"}
    async with httpx.AsyncClient(headers=headers, timeout=LIMIT_SECONDS) as http:
        entries = (await http.get(f"{stack.stack.api_url}/api/v1/database_types")).json()["data"]
    return [region["code"] for entry in entries for region in entry["regions"]]


async def _create(stack: StackProcess, region: str | None) -> httpx.Response:
    body = {"name": "a"} | ({"region": region} if region else {})
    headers = {"Authorization": f"Bearer {stack.stack.api_key}", "Idempotency-Key": str(uuid4())}
    async with httpx.AsyncClient(headers=headers) as http:
        return await http.post(f"{stack.stack.api_url}/api/v1/databases", json=body, timeout=60)


async def _fetch(dsn: str, sql: str, *arguments: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(dsn)
    try:
        return list(await connection.fetch(sql, *arguments))
    finally:
        await connection.close()


async def _execute(dsn: str, sql: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
