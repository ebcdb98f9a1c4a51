"""Whoever changes, removes, inserts or reorders an event after it was sealed is found out, from an export alone."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.audit.events import append
from app.audit.exporting import export
from app.audit.retention import drop_old, kept_since, make_partitions, record_omitted
from app.audit.sealing import newest_seal, seal_events
from app.audit.verifying import Verifier
from app.backups.storage.audit_heads import AuditHeads
from app.backups.storage.location import Folder
from app.backups.storage.objects import Objects
from app.core.clock import utc_now
from app.store.session import execute, fetch, raw_connection, transaction
from tests.cli.command import Headwater
from tests.support.backups import folder_store
from tests.support.store import execute_at

Line = dict[str, Any]
KEYS = "k1:ripfYr3FPLPEKQ8SYvR2i0zzi0ktKqO5tSOH+CzgC90="


async def add(number: int) -> None:
    for _ in range(number):
        await append("host.drain", ("host", 1), changes={"draining": (False, True)})


async def lines(days: int = 400) -> list[Line]:
    # As it is written to a file, and read from it.
    return [json.loads(json.dumps(line)) async for line in export(kept_since(days))]


def verified(export: list[Line], **options: Any) -> Verifier:
    verifier = Verifier(options.pop("heads", None), unsealed=options.pop("unsealed", timedelta(minutes=15)))
    for line in export:
        verifier.take(line)
    verifier.finish()
    return verifier


def faults(export: list[Line], **options: Any) -> list[tuple[str, str]]:
    return [(fault.what, fault.where) for fault in verified(export, **options).faults]


Tamper = Callable[..., Awaitable[None]]


@pytest.fixture
def tamper(control_admin_dsn: str) -> Tamper:
    """Statements by the owner of the tables: the service's role may do none of this."""

    async def run(*statements: str) -> None:
        await execute_at(control_admin_dsn, *statements)

    return run


async def ids() -> list[int]:
    return [row["id"] for row in await fetch("SELECT id FROM audit_events ORDER BY id")]


@pytest_asyncio.fixture
async def sealed(own_store: None) -> list[int]:
    """Nine events under three seals."""
    for _ in range(3):
        await add(3)
        assert await seal_events() == 3
    return await ids()


async def test_a_chain_that_nobody_touched(sealed: list[int]) -> None:
    await add(2)
    verifier = verified(await lines())
    assert verifier.faults == []
    assert (verifier.events, verifier.seals, verifier.waiting) == (11, 3, 2)
    assert await seal_events() == 2
    assert await seal_events() == 0
    assert verified(await lines()).waiting == 0


@pytest.mark.parametrize(
    ("tampered", "expected"),
    [
        ("UPDATE audit_events SET user_id = 7 WHERE id = {id}", [("changed", "event {id}")]),
        ("UPDATE audit_events SET changes = '{{}}' WHERE id = {id}", [("changed", "event {id}")]),
        ("UPDATE audit_events SET at = at - interval '1 second' WHERE id = {id}", [("changed", "event {id}")]),
        ("DELETE FROM audit_events WHERE id = {id}", [("removed", "event {id}")]),
        (
            "INSERT INTO audit_events (id, batch, actor_kind, action, object, outcome)"
            " SELECT 1000, batch, 'key', 'host.add', 'host', 'succeeded' FROM audit_events WHERE id = {id}",
            [("inserted", "event 1000")],
        ),
        (
            # Each has the other's id and place.
            "UPDATE audit_events SET id = CASE id WHEN {id} THEN {other} ELSE {id} END WHERE id IN ({id}, {other})",
            [("changed", "event {id}"), ("changed", "event {other}")],
        ),
        ("UPDATE audit_events SET batch = 1000 WHERE id = {id}", [("removed", "event {id}")]),
        ("DELETE FROM audit_seals WHERE id = 2", [("removed", "seal 2")]),
        ("UPDATE audit_seals SET at = at - interval '1 day' WHERE id = 2", [("changed", "seal 2")]),
        ("UPDATE audit_seals SET hash = sha256('') WHERE id = 2", [("changed", "seal 2"), ("changed", "seal 3")]),
        ("UPDATE audit_leaves SET leaves = substr(leaves, 49) WHERE id = 2", [("changed", "seal 2")]),
        ("DELETE FROM audit_leaves WHERE id = 2", [("removed", "seal 2")]),
    ],
)
async def test_tampering_is_named(
    sealed: list[int], tamper: Tamper, tampered: str, expected: list[tuple[str, str]]
) -> None:
    known = {"id": sealed[4], "other": sealed[5]}
    await tamper("ALTER TABLE audit_events DROP CONSTRAINT audit_events_pkey", tampered.format(**known))
    found = faults(await lines())
    assert {(what, where.format(**known)) for what, where in expected} <= set(found)
    assert verified(await lines()).faults != []


async def test_an_exports_lines_are_checked(sealed: list[int]) -> None:
    good = await lines()
    events = {line["id"]: place for place, line in enumerate(good) if line["record"] == "event"}
    first, second = (events[id] for id in sealed[4:6])
    swapped = list(good)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    assert faults(swapped) == [("reordered", f"event {sealed[5]}")]
    assert faults(good[:first] + good[first + 1 :]) == [("removed", f"event {sealed[4]}")]
    assert faults([*good[:first], good[first], *good[first:]]) == [("inserted", f"event {sealed[4]}")]
    changed = [{**line, "action": "host.add"} if place == first else line for place, line in enumerate(good)]
    assert faults(changed) == [("changed", f"event {sealed[4]}")]
    for broken in ([], [{"record": "event"}], [{"record": "poem"}], good[1:]):
        with pytest.raises(ValueError, match=r"line|export"):
            faults(broken)


async def test_a_chain_that_was_computed_anew_contradicts_its_head(sealed: list[int], tamper: Tamper) -> None:
    head = await newest_seal()
    assert head is not None
    heads = {head.id: head.hash.hex()}
    assert faults(await lines(), heads=heads) == []
    await tamper(
        f"DELETE FROM audit_events WHERE id = {sealed[4]}", "DELETE FROM audit_seals", "DELETE FROM audit_leaves"
    )
    while await seal_events(most=3):
        pass
    assert faults(await lines()) == []
    assert faults(await lines(), heads=heads)[0][0] in ("changed", "cut off")


async def test_a_tail_that_was_cut_off_is_missed(sealed: list[int], tamper: Tamper) -> None:
    head = await newest_seal()
    assert head is not None
    await tamper(f"DELETE FROM audit_events WHERE id > {sealed[5]}", "DELETE FROM audit_seals WHERE id = 3")
    assert faults(await lines()) == []
    assert faults(await lines(), heads={head.id: head.hash.hex()}) == [("cut off", "seal 3")]


@pytest.mark.parametrize("table", ["audit_events", "audit_leaves", "audit_seals", "audit_events_other"])
async def test_the_services_role_changes_nothing(sealed: list[int], table: str) -> None:
    for sql in (f"UPDATE {table} SET id = id", f"DELETE FROM {table}", f"TRUNCATE {table}", f"DROP TABLE {table}"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await execute(sql)


async def test_an_event_that_nobody_sealed_in_time_is_reported(sealed: list[int]) -> None:
    await add(1)
    (last,) = set(await ids()) - set(sealed)
    assert faults(await lines(), unsealed=timedelta(0)) == [("unsealed", f"event {last}")]


async def test_what_commits_late_is_sealed_after_what_committed_before(own_store: None, control_dsn: str) -> None:
    """A transaction that was under way when its batch was closed is waited for, and nobody else waits."""
    other = await asyncpg.connect(control_dsn)
    try:
        late = other.transaction()
        await late.start()
        await other.execute(
            "INSERT INTO audit_events (actor_kind, action, object, outcome)"
            " VALUES ('key', 'host.add', 'host', 'succeeded')"
        )
        await add(1)
        assert await seal_events(patience_seconds=0.1) == 0
        sealing = asyncio.create_task(seal_events())
        # Writers don't wait for the sealing.
        await add(2)
        await late.commit()
        assert await sealing >= 2
    finally:
        await other.close()
    await seal_events()
    verifier = verified(await lines())
    assert (verifier.faults, verifier.events, verifier.waiting) == ([], 4, 0)


async def test_many_write_and_many_seal(own_store: None) -> None:
    async def write() -> None:
        for _ in range(10):
            async with transaction():
                await add(1)

    async def seal() -> None:
        for _ in range(5):
            await seal_events(most=7)

    await asyncio.gather(*(write() for _ in range(6)), *(seal() for _ in range(3)))
    await seal_events()
    verifier = verified(await lines())
    assert (verifier.faults, verifier.events, verifier.waiting) == ([], 60, 0)


async def test_what_is_rolled_back_is_not_missed(own_store: None) -> None:
    async with raw_connection() as connection:
        undone = connection.transaction()
        await undone.start()
        await connection.execute(
            "INSERT INTO audit_events (actor_kind, action, object, outcome) VALUES ('key', 'a.b', 'a', 'succeeded')"
        )
        await undone.rollback()
    await add(1)
    await seal_events()
    assert verified(await lines()).faults == []


async def test_the_chain_survives_what_is_dropped_by_age(own_store: None, tamper: Tamper) -> None:
    """A year later: the old months are gone, and what is there is verified."""
    await tamper(
        "CREATE TABLE audit_events_p20240101 PARTITION OF audit_events"
        " FOR VALUES FROM ('2024-01-01T00:00:00Z') TO ('2024-02-01T00:00:00Z')"
    )
    await execute(
        "INSERT INTO audit_events (at, actor_kind, action, object, outcome) SELECT '2024-01-10T00:00:00Z', 'service',"
        " 'host.drain', 'host', 'succeeded' FROM generate_series(1, 3)"
    )
    await add(1)
    await seal_events()
    assert await drop_old(400) == 1
    await seal_events()
    verifier = verified(await lines())
    assert (verifier.faults, verifier.dropped) == ([], 3)
    (dropping,) = await fetch("SELECT actor_kind, changes::text AS c FROM audit_events WHERE action = 'audit.drop'")
    assert dropping["actor_kind"] == "service"
    # What should be there still is missed.
    assert {what for what, _ in faults(await lines(days=2000))} == {"removed"}
    await make_partitions()


async def test_a_month_takes_over_what_came_before_it_was_there(own_store: None, tamper: Tamper) -> None:
    """As after a standstill of months: events and leaves come while the current month has no partition."""
    month = f"p{kept_since(0):%Y%m%d}"
    await tamper(f"DROP TABLE audit_events_{month}, audit_leaves_{month}")

    async def places() -> set[str]:
        rows = await fetch(
            "SELECT tableoid::regclass::text AS place FROM audit_events"
            " UNION SELECT tableoid::regclass::text FROM audit_leaves"
        )
        return {row["place"] for row in rows}

    await add(3)
    assert await seal_events() == 3
    assert await places() == {"audit_events_other", "audit_leaves_other"}
    before = await lines()
    await make_partitions()
    assert await places() == {f"audit_events_{month}", f"audit_leaves_{month}"}
    await add(1)
    assert await seal_events() == 1
    after = await lines()
    # But for the moment of the export.
    assert after[1 : len(before)] == before[1:]
    assert verified(after).faults == []


async def test_what_was_refused_too_often_is_recorded(own_store: None) -> None:
    await execute(
        "INSERT INTO audit_refusals (user_id, hour, team_id, refusals) VALUES (1, now() - interval '2 hours', 5, 11),"
        " (2, now() - interval '2 hours', 5, 10), (3, date_trunc('hour', now()), 5, 99)"
    )
    assert await record_omitted(10) == 1
    (told,) = await fetch("SELECT object, subject_id, team_id, changes::text AS c FROM audit_events")
    assert (told["object"], told["subject_id"], told["team_id"]) == ("user", "1", 5)
    assert '"refusals": [10, 11]' in told["c"]
    assert [row["user_id"] for row in await fetch("SELECT user_id FROM audit_refusals")] == [3]


async def test_the_command_line(sealed: list[int], tamper: Tamper, control_dsn: str, tmp_path: Path) -> None:
    heads = AuditHeads(Objects(Folder(tmp_path / "store"), 5))
    command = Headwater(
        {
            "CONTROL_DSN": control_dsn,
            "BACKUP_STORE": f"file://{tmp_path / 'store'}",
            "SECRET_KEYS": KEYS,
        }
    )
    head = await newest_seal()
    assert head is not None
    for _ in range(2):
        await heads.keep(head.id, head.hash.hex(), utc_now())
    assert [item async for item in folder_store(tmp_path / "store").walk()] == [], "they are nobody's backup"
    assert len(await command.json("audit", "list", "--actor", "service", "--limit", "5")) == 5
    assert (await command.json("audit", "verify"))["ok"] is True
    exported = tmp_path / "export.ndjson"
    exported.write_text(await command.text("audit", "export"))
    # But for the moment of the export.
    assert (await command.text("audit", "export", "--json")).splitlines()[1:] == exported.read_text().splitlines()[1:]
    alone = Headwater({"HOME": str(tmp_path / "nowhere")})
    report = await alone.json("audit", "verify", str(exported), "--head", f"{head.id}:{head.hash.hex()}")
    assert {note["rule"]: note["detail"] for note in report["notes"]}["verified"] == "9 events, 3 seals"
    exported.write_text(exported.read_text().replace("host.drain", "host.add", 1))
    result = await alone.run("audit", "verify", str(exported))
    assert (result.exit_code, f"event {sealed[0]}" in result.stdout) == (1, True)
    await tamper(f"DELETE FROM audit_events WHERE id > {sealed[5]}", "DELETE FROM audit_seals WHERE id = 3")
    assert (await command.run("audit", "verify")).exit_code == 1
    assert (await command.json("audit", "verify", "--without-store"))["ok"] is True
    exported.write_text("{}\n")
    assert "no export" in await alone.refusal("audit", "verify", str(exported))
