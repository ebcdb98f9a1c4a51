"""What operators and the service itself do leaves events too."""

import getpass
import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import rich_click as click

from app.backups.scheduling import request_due
from app.provisioning import lifecycle
from app.provisioning.service import delete_expired
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import execute, fetch
from app.upkeep.sweep import Retention, sweep
from tests.backups.support import TERMS
from tests.cli.command import Headwater, commands_of
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active, make_revoked

KEYS = "k1:ripfYr3FPLPEKQ8SYvR2i0zzi0ktKqO5tSOH+CzgC90="
READING = {
    "audit export",
    "audit list",
    "audit verify",
    "backups list",
    "backups recover",
    "backups show",
    "backups verify-store",
    "check",
    "databases count",
    "databases credentials",
    "databases deleted",
    "databases inspect",
    "databases list",
    "databases metrics",
    "databases users",
    "env",
    "hosts list",
    "keys list",
    "operations list",
    "operations show",
    "pool status",
    "secrets keys",
    "teams list",
    "teams members",
    "migrate",
    "up",
    "usage",
    "users list",
    "users sign-in-link",
    "webhooks waiting",
    "workflows open",
}
"""Commands that change no row: `up` runs the processes that do, and `migrate` changes the tables."""
CHANGING = {
    "backups restore": "database.recover",
    "backups run": "backup.take",
    "backups test": "backup.test",
    "blueprints publish": "blueprint.publish",
    "blueprints ship": "blueprint.publish",
    "databases complete-rotation": "credential_rotation.complete",
    "databases delete": "database.delete",
    "databases expire": "database.change",
    "databases pause": "database.pause",
    "databases protect": "database.change",
    "databases remove-user": "database_user.delete",
    "databases rename": "database.change",
    "databases resume": "database.resume",
    "databases rotate": "credentials.rotate",
    "databases rotate-user": "database_user.rotate",
    "databases undelete": "database.undelete",
    "databases unprotect": "database.change",
    "databases waive-final-backup": "database.waive_final_backup",
    "hosts add": "host.add",
    "hosts drain": "host.drain",
    "hosts evacuate": "host.evacuate",
    "hosts remove": "host.remove",
    "hosts set": "host.set",
    "hosts undrain": "host.undrain",
    "keys create": "api_key.create",
    "keys revoke": "api_key.revoke",
    "operations cancel": "operation.cancel",
    "operations retry": "operation.retry",
    "pool set": "pool.set",
    "secrets reseal": "secrets.reseal",
    "teams add-member": "member.add",
    "teams remove-member": "member.remove",
    "teams set-role": "member.change",
    "teams set": "team.change",
    "users create": "user.create",
    "users set": "user.change",
}
"""The others, with their actions."""


def commands() -> set[str]:
    found: set[str] = set()
    for name, command in commands_of().items():
        verbs = command.commands if isinstance(command, click.Group) else {"": command}
        found |= {f"{name} {verb}".strip() for verb in verbs}
    return found


async def events(after: int) -> list[tuple[Any, ...]]:
    """Those after an earlier one."""
    columns = "actor_kind, actor_name, action, object, subject_id, team_id"
    rows = await fetch(f"SELECT {columns} FROM audit_events WHERE id > $1 ORDER BY id", after)
    return [tuple(row) for row in rows]


async def newest() -> int:
    return int((await fetch("SELECT coalesce(max(id), 0) AS id FROM audit_events"))[0]["id"])


def test_every_command_is_known_to_read_or_to_leave_an_event() -> None:
    assert commands() == READING | CHANGING.keys()
    assert not READING & CHANGING.keys()


async def test_commands_leave_events(lone: LoneApi) -> None:
    """Those that need no server."""
    caller = await lone.caller()
    uuid = data_of(await caller.create("a"), 202)["uuid"]
    await make_active(uuid)
    kept = data_of(await caller.create("b"), 202)["uuid"]
    operation = (await fetch("SELECT uuid FROM operations ORDER BY id DESC LIMIT 1"))[0]["uuid"]
    before = await newest()
    command = Headwater({"CONTROL_DSN": lone.control_dsn, "SECRET_KEYS": KEYS})
    team, user = str(caller.team_id), str(caller.user_id)
    done: list[tuple[str, ...]] = [
        ("databases", "rename", uuid, "c"),
        ("databases", "protect", uuid),
        ("databases", "unprotect", uuid),
        ("databases", "expire", uuid, "2030-01-01T00:00:00Z"),
        ("operations", "retry", str(operation)),
        ("operations", "cancel", str(operation), "--yes"),
        ("backups", "run", uuid),
        ("hosts", "drain", "1"),
        ("hosts", "undrain", "1"),
        ("pool", "set", "--region", "us-east-1", "--engine", "postgres", "--size", "0"),
        ("teams", "set", team, "--tier", "enterprise"),
        ("keys", "create", "--user", user, "--name", "k", "--scopes", "databases:read"),
        ("keys", "revoke", str(caller.key_id)),
        ("users", "create", "--email", f"{uuid4().hex}@example.com", "--name", "n"),
    ]
    for arguments in done:
        await command.text(*arguments)
    found = await events(before)
    assert [one[2] for one in found] == [CHANGING[" ".join(arguments[:2])] for arguments in done]
    assert {one[:2] for one in found} == {("operator", getpass.getuser())}
    assert found[0][3:] == ("database", uuid, caller.team_id)
    assert {one[5] for one in found[:7]} == {caller.team_id}
    assert kept not in str(found[:4])
    changed = await fetch("SELECT changes::text AS changes FROM audit_events WHERE action = 'team.change'")
    assert [json.loads(one["changes"]) for one in changed] == [{"tier": ["pro", "enterprise"]}]
    await command.text("databases", "list")
    await command.refusal("databases", "rename", "nothing-like-it", "x")
    assert len(await events(before)) == len(done)


async def active(caller: Caller) -> UUID:
    uuid = data_of(await caller.create("a"), 202)["uuid"]
    await make_active(uuid)
    return UUID(uuid)


async def test_what_is_due_leaves_events(lone: LoneApi) -> None:
    caller = await lone.caller()
    database = await active(caller)
    before = await newest()
    assert not await delete_expired(DEFAULT_PLANS, database, timedelta(0))
    await execute("UPDATE databases SET expires_at = now() WHERE uuid = $1", database)
    assert await delete_expired(DEFAULT_PLANS, database, timedelta(0))
    await make_revoked(str(database))
    for _ in range(2):
        await lifecycle.note_destroyed(DEFAULT_PLANS, database)
    about = ("database", str(database), caller.team_id)
    assert await events(before) == [
        ("service", None, "database.expire", *about),
        ("service", None, "database.destroy", *about),
    ]


async def test_a_scheduled_backup_leaves_one(lone: LoneApi) -> None:
    caller = await lone.caller()
    database = await active(caller)
    before = await newest()
    await execute(
        "INSERT INTO backup_policies (database_id, backup_at) SELECT id, now() FROM databases WHERE uuid = $1"
        " ON CONFLICT (database_id) DO UPDATE SET backup_at = now()",
        database,
    )
    assert await request_due(TERMS, database)
    assert not await request_due(TERMS, database)
    assert await events(before) == [("service", None, "backup.take", "database", str(database), caller.team_id)]


async def test_a_sweep_leaves_one_where_it_finds_something(lone: LoneApi) -> None:
    caller = await lone.caller()
    data_of(await caller.create("a"), 202)
    before = await newest()
    kept = timedelta(days=1)
    retention = Retention(history=kept, questions=kept, operations=kept)
    assert (await sweep("expired idempotency keys", retention)).removed == 0
    assert await events(before) == []
    await execute("UPDATE idempotency_keys SET expires_at = now(), response_status = 202, response_sealed = ''")
    assert (await sweep("expired idempotency keys", retention)).removed == 1
    assert await events(before) == [("service", None, "records.sweep", "records", "swept", None)]


async def test_a_provisioning_that_is_cancelled_in_temporal_is_recorded(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create("a"), 202)["uuid"]
    before = await newest()
    for _ in range(2):
        await lifecycle.abandon_provisioning(DEFAULT_PLANS, UUID(uuid))
    assert await events(before) == [("operator", None, "workflow.stop", "database", uuid, caller.team_id)]
