"""Which databases of a host a run tries, when they are more than it comes to."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from app.contracts.base import Engine
from app.databases.hosted import RecordedDatabase, recorded_on
from app.hosts.records import Host
from app.store.session import fetch
from app.upkeep.reconcile import findings
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.logins import RULE, TRIED_RULES, active, due
from app.upkeep.reconcile.snapshot import PATIENCE
from tests.support.lone_pool import LonePool

_TRIED = 25
"""In one run, of so few."""


class _IdleHost:
    async def sessions(self, names: Iterable[str]) -> dict[str, Any]:
        return {}


async def test_those_with_findings_are_tried_beside_those_whose_turn_it_is(pool: LonePool) -> None:
    host_id = await pool.api.add_host()
    await pool.add_members(3 * _TRIED, host_id)
    recorded = active(await recorded_on(host_id, PATIENCE))
    first = await _due(host_id, recorded)
    assert len(first) == _TRIED
    found = first[0]
    await findings.write(host_id, [_refused(found)], {})
    second = await _due(host_id, recorded)
    assert set(second) & set(first) == {found}
    assert len(second) == _TRIED + 1


async def test_a_run_ends_no_finding_of_what_it_did_not_come_to(pool: LonePool) -> None:
    host_id = await pool.api.add_host()
    one, other = await pool.add_members(2, host_id)
    await findings.write(host_id, [_refused(one), _refused(other)], {})
    seen = await fetch("SELECT first_seen_at FROM findings WHERE subject = $1", str(one))
    await findings.write(host_id, [], {}, unlooked=[(rule, str(one)) for rule in TRIED_RULES])
    assert await findings.subjects_of(host_id, [RULE]) == [str(one)]
    await findings.write(host_id, [_refused(one)], {})
    assert await fetch("SELECT first_seen_at FROM findings WHERE subject = $1", str(one)) == seen
    await findings.write(host_id, [], {})
    assert await findings.subjects_of(host_id, [RULE]) == []


async def _due(host_id: int, recorded: list[RecordedDatabase]) -> list[UUID]:
    idle: Any = _IdleHost()
    return [one.uuid for one in await due(Host(host_id, Engine.POSTGRES, "us-east-1", "db:5432"), idle, recorded)]


def _refused(database: UUID) -> Violation:
    return Violation(rule=RULE, subject=str(database), detail="refuses its password")
