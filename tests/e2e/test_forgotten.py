"""A Temporal that comes back as it was earlier, as from a backup or after a disk that lost what it wrote last: what was
accepted since is done all the same."""

import asyncio
import shutil
import signal
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from temporalio.service import RPCError, RPCStatusCode

from app.contracts.queues import backup_workflow_id
from app.upkeep.reconcile.restarts import restart_lost_workflows
from tests.e2e.chaos import ENGINES, Ledger, check, create
from tests.e2e.patient_client import client_of
from tests.support.freezing import frozen
from tests.support.stack import LiveStack, signal_process
from tests.support.store import store
from tests.support.waiting import until

AT_ONCE = timedelta(0)


async def test_what_temporal_has_forgotten_is_begun_anew(stack: LiveStack, tmp_path: Path) -> None:
    ledger = Ledger()
    async with client_of(stack) as client:
        made = await asyncio.gather(*(create(client, ledger, engine, wait=30) for engine in ENGINES))
        await check(stack, ledger)
        earlier = _copy_of_its_state(stack, tmp_path)
        async with frozen(stack.pid("worker"), stack.file.control_dsn):
            backups = [(await client.send("POST", f"/databases/{one}/backups", body={})).data["uuid"] for one in made]
            await until(lambda: _all_accepted(stack))
            await _go_back(stack, earlier)
        await until(lambda: _is_forgotten(stack, backups))
        async with store(stack.file.control_dsn):
            begun = await restart_lost_workflows(await stack.temporal(), AT_ONCE)
        assert sorted(one.split()[1] for one in begun) == ["BackupDatabase"] * len(backups)
        await check(stack, ledger)
        for backup in backups:
            assert (await client.send("GET", f"/backups/{backup}")).data["status"] == "completed"


def _copy_of_its_state(stack: LiveStack, folder: Path) -> Path:
    """As it is at one moment."""
    temporal = stack.pid("temporal")
    signal_process(temporal, signal.SIGSTOP)
    try:
        return Path(shutil.copytree(_state(stack), folder / "earlier"))
    finally:
        signal_process(temporal, signal.SIGCONT)


async def _go_back(stack: LiveStack, earlier: Path) -> None:
    """Ends Temporal, which the stack starts again from that copy."""
    temporal = stack.pid("temporal")
    signal_process(temporal, signal.SIGSTOP)
    try:
        shutil.rmtree(_state(stack))
        shutil.copytree(earlier, _state(stack))
    finally:
        signal_process(temporal, signal.SIGKILL)

    async def started() -> bool:
        return stack.pid("temporal") != temporal

    await until(started)


def _state(stack: LiveStack) -> Path:
    return stack.home / "temporal"


async def _all_accepted(stack: LiveStack) -> bool:
    """Temporal has all of it: nothing of ours would start it again."""
    return not await stack.control("SELECT 1 FROM workflow_starts")


async def _is_forgotten(stack: LiveStack, backups: list[str]) -> bool:
    """Whether Temporal is back, and knows nothing of these."""
    try:
        client = await stack.temporal()
        for backup in backups:
            with pytest.raises(RPCError) as refused:
                await client.get_workflow_handle(backup_workflow_id(UUID(backup))).describe()
            if refused.value.status is not RPCStatusCode.NOT_FOUND:
                return False
    except (RPCError, RuntimeError):
        return False
    return True
