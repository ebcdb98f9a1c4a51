"""What a stack at rest holds: objects, sessions, files, workflows, and the memory of its processes."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path

import psutil

from app.contracts.base import Engine
from tests.e2e.hosts import mysql, objects, postgres
from tests.support.stack import LiveStack
from workers.schedules import UPKEEP_SCHEDULES

OURS = ("api", "worker")
_NO_UPKEEP = " AND ".join(f"WorkflowType != '{schedule.workflow.__name__}'" for schedule in UPKEEP_SCHEDULES)
"""One of these may be about to run at any moment: some are every minute."""
_LOOKS = 6
_LOOK_SECONDS = 0.5
_LOGS = frozenset({"pg_wal", "pg_xact", "pg_subtrans", "pg_multixact", "pg_logical", "pg_stat_tmp"})
"""Folders in which PostgreSQL notes what was done: how much of it is no matter of databases."""


@dataclass(frozen=True)
class Holdings:
    """`memory` is the resident set of our processes in MiB, `open_files` the descriptors that they hold, `sessions`
    those of our own database and of each host; `folders` and `files` are what lies on the hosts' disks."""

    objects: Counter[str]
    workflows: list[str]
    sessions: dict[str, int]
    open_files: dict[str, int]
    folders: dict[str, int]
    files: dict[str, int]
    memory: dict[str, float]


async def holdings(stack: LiveStack) -> Holdings:
    """The least of several looks, where something of the moment may be counted."""
    looks, listed = [], []
    for _ in range(_LOOKS):
        looks.append((await _sessions(stack), {part: _process(stack, part).num_fds() for part in OURS}))
        listed.append(Counter([entry for host in stack.file.hosts for entry in await objects(host)]))
        await asyncio.sleep(_LOOK_SECONDS)
    on_disk = _on_disk(stack)
    sessions = {name: min(look[0][name] for look in looks) for name in looks[0][0]}
    open_files = {part: min(look[1][part] for look in looks) for part in OURS}
    return Holdings(
        objects=reduce(and_, listed),
        workflows=await _open_workflows(stack),
        sessions=sessions,
        open_files=open_files,
        folders={name: sum(path.is_dir() for path in paths) for name, paths in on_disk.items()},
        files={name: sum(not path.is_dir() for path in paths) for name, paths in on_disk.items()},
        memory={part: _process(stack, part).memory_info().rss / 2**20 for part in OURS},
    )


def _process(stack: LiveStack, part: str) -> psutil.Process:
    return psutil.Process(stack.pid(part))


async def _open_workflows(stack: LiveStack) -> list[str]:
    client = await stack.temporal()
    return [one.id async for one in client.list_workflows(f"ExecutionStatus = 'Running' AND {_NO_UPKEEP}")]


async def _sessions(stack: LiveStack) -> dict[str, int]:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    counts = {"control": (await stack.control(sql))[0]["count"]}
    for host in stack.file.hosts:
        if host.engine == Engine.POSTGRES:
            async with postgres(host.admin_dsn) as connection:
                counts[host.engine] = await connection.fetchval(sql)
        else:
            async with mysql(host.admin_dsn) as cursor:
                await cursor.execute("SELECT count(*) FROM information_schema.processlist")
                counts[host.engine] = (await cursor.fetchone())[0] - 1
    return counts


def _on_disk(stack: LiveStack) -> dict[str, list[Path]]:
    """Everything in the folder of each host, the server's log left out."""
    return {
        folder.name: [path for path in folder.rglob("*") if not _LOGS & set(path.parts)]
        for folder in stack.home.iterdir()
        if folder.name.startswith(("postgres-", "mysql-"))
    }
