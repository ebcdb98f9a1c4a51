"""Databases that get fewer connections on their host than their limit, and that no row names as held."""

from collections.abc import Sequence
from uuid import UUID

from app.engines.base import EngineAdapter, EngineError
from app.provisioning.connections import find_unrecorded, give_back
from app.quotas.plans import Plans
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.snapshot import HostSnapshot

UNRECORDED = "connections_held_unrecorded"
_MAX = 20
"""The maximum of databases that are repaired in one run."""


async def check_held(snapshot: HostSnapshot, adapter: EngineAdapter) -> list[Violation]:
    """A violation for each such database. What the host doesn't report now is left to the next run."""
    try:
        found = await find_unrecorded(adapter, snapshot.host)
    except EngineError:
        return []
    detail = f"gets fewer connections on {snapshot.host.address} than its limit, and no record says so"
    return [Violation(rule=UNRECORDED, subject=str(one), detail=detail) for one in found]


async def release_held(plans: Plans, adapter: EngineAdapter, violations: Sequence[Violation]) -> list[str]:
    """Gives databases their connections back. Returns a sentence for each, failures included."""
    sentences = []
    for one in violations[:_MAX]:
        failure = await give_back(plans, adapter, UUID(one.subject))
        sentences.append(
            f"Couldn't give database {one.subject} its connections back: {failure}."
            if failure
            else f"Gave database {one.subject} all connections of its limit again."
        )
    return sentences
