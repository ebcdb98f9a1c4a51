"""Rules between our records and one host, in both directions."""

from collections.abc import Iterator

import msgspec

from app.contracts.base import DatabaseStatus
from app.engines.base import FoundTenant
from app.upkeep.reconcile.look import Look, Recorded
from app.upkeep.reconcile.report import Violation

ORPHAN = "orphan_on_host"
FOREIGN = "foreign_on_host"
"""Another installation's: no fault of anybody's."""
MISSING = "missing_on_host"
CLOSED = "access_closed"
OPEN = "access_open"
WRITABLE = "writes_open"


class Fault(msgspec.Struct, frozen=True):
    """A broken rule, with the two sides that it is about."""

    violation: Violation
    found: FoundTenant | None
    recorded: Recorded | None

    @property
    def key(self) -> tuple[str, str]:
        return self.violation.rule, self.violation.subject


class Seen(msgspec.Struct, frozen=True):
    look: Look
    faults: list[Fault]
    """Those that two looks saw."""


def faults(look: Look) -> list[Fault]:
    """All at once, in the order of the names on the host."""
    orphans = [_orphan(look, look.found[name]) for name in sorted(look.found.keys() - look.recorded.keys())]
    rows = [look.recorded[name] for name in sorted(look.recorded)]
    return [*orphans, *(fault for row in rows for fault in _of_row(look, row, look.found.get(row.engine_name)))]


def _orphan(look: Look, found: FoundTenant) -> Fault:
    if found.installation not in ("", look.installation):
        detail = f"on {look.host.address} is another installation's, {found.installation}, and is left alone"
        return Fault(Violation(rule=FOREIGN, subject=found.name, detail=detail), found, None)
    detail = f"carries our marker on {look.host.address}, and no record names it"
    return Fault(Violation(rule=ORPHAN, subject=found.name, detail=detail), found, None)


def _of_row(look: Look, row: Recorded, found: FoundTenant | None) -> Iterator[Fault]:
    where = look.host.address
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


def _lacks(row: Recorded, found: FoundTenant | None) -> list[str]:
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


def _fault(rule: str, row: Recorded, found: FoundTenant | None, detail: str) -> Fault:
    return Fault(Violation(rule=rule, subject=str(row.uuid), detail=detail), found, row)
