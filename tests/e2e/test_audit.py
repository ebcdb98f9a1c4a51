"""The audit finds what it is there to find: planted faults, one at a time."""

from app.contracts.base import Engine
from tests.e2e.audit import audit, settled
from tests.e2e.hosts import mysql, postgres
from tests.e2e.patient_client import client_of
from tests.support.stack import LiveStack
from tests.support.waiting import until

_NAME = "t" + "a" * 22
_RENAME_EVENT = (
    "UPDATE events SET type = $3 WHERE type = $2 AND database_id = (SELECT id FROM databases WHERE uuid = $1::uuid)"
)


async def test_it_finds_orphans_on_the_hosts(stack: LiveStack) -> None:
    await settled(stack)
    hosts = {host.engine: host for host in stack.file.hosts}
    orphans = [f"mysql has an orphan: database {_NAME}", f"postgres has an orphan: role {_NAME}"]

    async def found() -> bool:
        """These and nothing else: scheduled work may be under way at one look."""
        return sorted(await audit(stack)) == orphans

    async with postgres(hosts[Engine.POSTGRES].admin_dsn) as connection, mysql(hosts[Engine.MYSQL].admin_dsn) as cursor:
        await connection.execute(f"CREATE ROLE {_NAME}")
        await cursor.execute(f"CREATE DATABASE {_NAME}")
        try:
            await until(found)
        finally:
            await connection.execute(f"DROP ROLE {_NAME}")
            await cursor.execute(f"DROP DATABASE {_NAME}")


async def test_it_finds_rows_and_events_that_do_not_agree(stack: LiveStack) -> None:
    async with client_of(stack) as client:
        made = (await client.create(Engine.POSTGRES)).data
        uuid = made["uuid"]
        await settled(stack)
        await stack.control(_RENAME_EVENT, uuid, "database.provisioned", "database.spoilt")
        await stack.control("UPDATE idempotency_keys SET response_sealed = NULL WHERE resource = $1", uuid)
        await stack.control("UPDATE databases SET status = 'provisioning' WHERE uuid = $1::uuid", uuid)
        broken = "\n".join(await audit(stack))
        await stack.control("UPDATE databases SET status = 'active' WHERE uuid = $1::uuid", uuid)
        await client.delete(uuid)
    for fault in ("is still provisioning", "has the events", "has no answer", f"orphan: database {made['db_name']}"):
        assert fault in broken
    # What was spoilt here would spoil the others' audits.
    await stack.control(_RENAME_EVENT, uuid, "database.spoilt", "database.provisioned")
    await stack.control("UPDATE idempotency_keys SET response_sealed = '' WHERE response_sealed IS NULL")
    await settled(stack)
