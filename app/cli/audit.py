"""`headwater audit`: who did what, and whether somebody changed it afterwards."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click

from app.audit import records
from app.audit.exporting import export
from app.audit.filters import actor_filter
from app.audit.records import EventFilters, EventRecord
from app.audit.retention import kept_since
from app.audit.verifying import Verifier
from app.backups.storage.errors import BackupStoreError
from app.cli.installation import backup_store, plans, settings, store
from app.cli.output import shown, silent
from app.cli.parameters import POSITIVE
from app.cli.tables import SHOWN, Rows
from app.cli.writing import writing
from app.core.settings import Settings
from app.upkeep.reconcile.findings import Report, Violation

_LONGEST_LINE = 1024 * 1024 * 4
"""Of an export, in bytes: the leaves of the largest seal, and much more."""


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    outcome: str
    team_id: int | None
    address: str | None
    request_id: str | None
    changes: dict[str, list[Any]] | None


@click.group()
def audit() -> None:
    """Who did what, and whether somebody changed that afterwards."""


@audit.command("list")
@click.option("--actor", help="user:ID, key:ID, operator or service.")
@click.option("--action", help="Such as database.create.")
@click.option("--subject", help="Such as database:UUID.")
@click.option("--team", "team_id", type=POSITIVE, help="Only events of the team with this id.")
@click.option("--from", "since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="From then on, in UTC.")
@click.option("--to", "until", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Before then, in UTC.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=SHOWN, show_default=True)
@shown
async def list_events(
    actor: str | None,
    action: str | None,
    subject: str | None,
    team_id: int | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> Rows:
    """Show events of all teams, and of none, newest first."""
    kind, _, id = (subject or "").partition(":")
    filters = EventFilters(
        action=action,
        object=kind or None,
        subject_id=id or None,
        since=since and since.replace(tzinfo=UTC),
        until=until and until.replace(tzinfo=UTC),
    )
    if actor is not None:
        filters = msgspec.structs.replace(filters, **actor_filter(actor))
    async with store():
        found = await records.list_all(filters, team_id=team_id, limit=limit)
    return Rows(rows=[_line(record) for record in found], total=len(found), noun="events", max_rows=limit)


@audit.command("export")
@silent
async def export_events() -> None:
    """Write everything to standard output, a JSON object on each line: events, and the seals over them."""
    async with store():
        async for line in export(kept_since(plans().longest_audit_days)):
            with writing():
                sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    with writing():
        sys.stdout.buffer.flush()


@audit.command("verify")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--head", "heads", multiple=True, metavar="NUMBER:HASH", help="A seal that has to be in the chain.")
@click.option("--without-store", is_flag=True, help="Don't compare with the seals that are kept with the backups.")
@shown
async def verify(file: Path | None, heads: tuple[str, ...], without_store: bool) -> Report:
    """List every event that was changed, removed, inserted or reordered since it was sealed: of our own database, or of
    an export in FILE, for which nothing else is needed. Exits with 1 if there is any."""
    known = dict(_head(text) for text in heads)
    if file is not None:
        verifier = Verifier(known, unsealed=_longest_unsealed())
        for line in _lines(file):
            _take(verifier, line)
        return _report(verifier, [])
    async with store():
        notes: list[Violation] = []
        twice: list[Violation] = []
        if not without_store:
            kept = await _kept_heads()
            twice = [
                _violation("changed", f"seal {number}", f"the backup store has another one: {digest}")
                for number, digest in kept
                if known.setdefault(number, digest) != digest
            ]
            if not kept:
                notes.append(_violation("heads", "backup store", "it has no seal to compare with yet"))
        verifier = Verifier(known, unsealed=_longest_unsealed())
        async for fields in export(kept_since(plans().longest_audit_days)):
            _take(verifier, fields)
    return _report(verifier, notes, twice)


async def _kept_heads() -> list[tuple[int, str]]:
    try:
        return await backup_store().audit_heads.all()
    except BackupStoreError as error:
        raise click.ClickException(f"{error}. --without-store verifies the rest.") from None


def _longest_unsealed() -> timedelta:
    try:
        return timedelta(seconds=settings().audit_unsealed_seconds)
    except click.ClickException:
        # An export is verified on any machine.
        return timedelta(seconds=Settings().audit_unsealed_seconds)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    opened = nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb")
    with opened as source:
        number = 0
        while text := source.readline(_LONGEST_LINE):
            number += 1
            try:
                yield msgspec.json.decode(text, type=dict[str, Any])
            except msgspec.DecodeError as fault:
                raise click.ClickException(f"{file}: line {number} is no line of an export: {fault}") from None


def _take(verifier: Verifier, line: dict[str, Any]) -> None:
    try:
        verifier.take(line)
    except ValueError as fault:
        raise click.ClickException(f"This is no export: {fault}") from None


def _report(verifier: Verifier, notes: list[Violation], more: list[Violation] | None = None) -> Report:
    try:
        verifier.finish()
    except ValueError as fault:
        raise click.ClickException(f"This is no export: {fault}") from None
    found = [_violation(one.what, one.where, one.detail) for one in verifier.faults] + (more or [])
    if verifier.unlisted:
        found.append(_violation("more", "export", f"{verifier.unlisted} further faults are not listed"))
    notes = [*notes, _violation("verified", "events", f"{verifier.events} events, {verifier.seals} seals")]
    if verifier.newest is not None:
        newest = verifier.newest
        detail = f"{newest.id}:{newest.hash.hex()}, of {newest.at.isoformat()}"
        notes.append(_violation("head", "newest seal", detail))
    if verifier.dropped:
        notes.append(_violation("dropped", "events", f"{verifier.dropped} are no longer kept, by their age"))
    if verifier.oldest_waiting is not None:
        detail = f"{verifier.waiting} are not sealed yet, the oldest of {verifier.oldest_waiting.isoformat()}"
        notes.append(_violation("unsealed", "events", detail))
    return Report(ok=not found, violations=found, notes=notes)


def _violation(rule: str, subject: str, detail: str) -> Violation:
    return Violation(rule=rule, subject=subject, detail=detail)


def _head(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise click.BadParameter("expected NUMBER:HASH", param_hint="'--head'")
    return int(number), digest.lower()


def _line(record: EventRecord) -> EventLine:
    who = record.actor_name or record.actor_kind
    if record.api_key_id is not None:
        who = f"key:{record.api_key_id}"
    elif record.user_id is not None:
        who = f"user:{record.user_id}"
    return EventLine(
        id=record.id,
        at=record.at,
        actor=who if record.actor_name is None else f"{record.actor_kind} {record.actor_name}",
        action=record.action,
        subject=record.object if record.subject_id is None else f"{record.object}:{record.subject_id}",
        outcome=record.outcome if record.error is None else record.error,
        team_id=record.team_id,
        address=record.address,
        request_id=record.request_id,
        changes=record.changes,
    )
