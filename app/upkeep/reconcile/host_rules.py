"""Rules that compare our records with one host, in both directions."""

from collections.abc import Iterator

import msgspec

from app.contracts.base import DatabaseStatus
from app.databases.hosted import RecordedDatabase
from app.engines.base import FoundTenant
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.snapshot import HostSnapshot

ORPHAN = "orphan_on_host"
FOREIGN = "foreign_on_host"
"""The object belongs to another installation, which is no violation."""
MISSING = "missing_on_host"
CLOSED = "access_closed"
OPEN = "access_open"
WRITABLE = "writes_open"


class Mismatch(msgspec.Struct, frozen=True):
    """A violated rule, with both sides of the comparison."""

    violation: Violation
    found: FoundTenant | None
    recorded: RecordedDatabase | None

    @property
    def key(self) -> tuple[str, str]:
        return self.violation.rule, self.violation.subject


class Inspection(msgspec.Struct, frozen=True):
    snapshot: HostSnapshot
    mismatches: list[Mismatch]
    """The mismatches that both snapshots show."""


def mismatches(snapshot: HostSnapshot) -> list[Mismatch]:
    """All mismatches of a snapshot, ordered by the names on the host."""
    orphans = [
        _orphan(snapshot, snapshot.found[name]) for name in sorted(snapshot.found.keys() - snapshot.recorded.keys())
    ]
    rows = [snapshot.recorded[name] for name in sorted(snapshot.recorded)]
    return [
        *orphans,
        *(mismatch for row in rows for mismatch in _of_row(snapshot, row, snapshot.found.get(row.engine_name))),
    ]


def _orphan(snapshot: HostSnapshot, found: FoundTenant) -> Mismatch:
    if found.installation not in ("", snapshot.installation):
        detail = f"on {snapshot.host.address} is another installation's, {found.installation}, and is left alone"
        return Mismatch(Violation(rule=FOREIGN, subject=found.name, detail=detail), found, None)
    detail = f"carries our marker on {snapshot.host.address}, and no record names it"
    return Mismatch(Violation(rule=ORPHAN, subject=found.name, detail=detail), found, None)


def _of_row(snapshot: HostSnapshot, row: RecordedDatabase, found: FoundTenant | None) -> Iterator[Mismatch]:
    where = snapshot.host.address
    if row.provisioned and not row.leaving and (lacks := _lacks(row, found)):
        yield _fault(MISSING, row, found, f"lacks {', '.join(lacks)} on {where}")
    if found is None or not row.settled:
        return
    if row.status is DatabaseStatus.ACTIVE and not found.admits:
        yield _fault(CLOSED, row, found, f"is active, and {where} lets nobody log in to it")
    ended = row.status is DatabaseStatus.PAUSED or (row.status is DatabaseStatus.DELETED and row.revoked)
    if ended and found.admits:
        yield _fault(OPEN, row, found, f"is {row.status.value}, and {where} still lets its tenant log in")
    if row.status is DatabaseStatus.ACTIVE and row.frozen and found.may_create:
        yield _fault(WRITABLE, row, found, f"is frozen, and {where} still lets its tenant create")


def _lacks(row: RecordedDatabase, found: FoundTenant | None) -> list[str]:
    if found is None or found.marker != row.marker:
        return ["everything"]
    parts = [("its database", found.has_database), ("its login", found.has_role)]
    whole = found.has_database and found.has_role and found.admits
    if whole and row.status is DatabaseStatus.ACTIVE and not row.changing:
        parts += [
            ("the right to connect", found.may_connect),
            ("the right to create", found.may_create or row.frozen),
            ("a schema of its own", found.has_schema),
        ]
    return [what for what, there in parts if not there]


def _fault(rule: str, row: RecordedDatabase, found: FoundTenant | None, detail: str) -> Mismatch:
    return Mismatch(Violation(rule=rule, subject=str(row.uuid), detail=detail), found, row)
