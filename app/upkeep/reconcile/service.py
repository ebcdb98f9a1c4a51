"""The consistency check, and the scheduled runs that also repair."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from temporalio.client import Client

from app.audit.actions import Action
from app.audit.events import append
from app.contracts.reconcile import HostRef, ReconcileStep
from app.core.ids import find_uuid
from app.core.secrets import SecretBox
from app.databases.hosted import RecordedDatabase
from app.databases.records import names_of
from app.engines.base import EngineError
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.records import Host, note_extensions, registered_hosts
from app.operations.overdue import report_overdue
from app.outbox.workflow_starts import without_markup
from app.quotas.plans import Plans
from app.upkeep.reconcile import findings, orphans
from app.upkeep.reconcile.accounts import ACCOUNT_RULES, check_accounts, repair_accounts
from app.upkeep.reconcile.dump_accounts import check_dump_accounts, remove_dump_accounts
from app.upkeep.reconcile.findings import Report, Violation
from app.upkeep.reconcile.held import check_held, release_held
from app.upkeep.reconcile.host_resources import scarce
from app.upkeep.reconcile.host_rules import FOREIGN, ORPHAN
from app.upkeep.reconcile.hosts import check_hosts, inspect_host, unreachable
from app.upkeep.reconcile.logins import TRIED_RULES, active, due, try_logins
from app.upkeep.reconcile.operations import end_astray
from app.upkeep.reconcile.records import check_records
from app.upkeep.reconcile.repairs import repair_host, restore_credentials
from app.upkeep.reconcile.restarts import RESTART_AFTER, restart_lost_workflows
from app.upkeep.reconcile.schedules import check_schedules
from app.upkeep.reconcile.snapshot import PATIENCE
from app.upkeep.reconcile.store_role import check_store_role
from app.webhooks import waiting

_MAX_SENTENCES = 20
"""The maximum of sentences of each kind in a result. The counts include all."""

_MOST_DELIVERIES = 200
"""The most deliveries that one run takes over."""


async def check(box: SecretBox, orphan_age: timedelta | None, others: Sequence[Violation] = ()) -> Report:
    """Checks every rule for our own database and the hosts, and changes nothing. `others` are violations found
    elsewhere; `orphan_age` is the one that scheduled runs use."""
    adapters = Adapters(box)
    try:
        found = [*others, *await check_store_role(), *await check_records(PATIENCE)]
        found += await check_hosts(box, adapters, orphan_age)
    finally:
        await adapters.close()
    violations, notes = _split_notes(found)
    return Report(ok=not violations, violations=violations, notes=notes)


async def list_hosts() -> list[HostRef]:
    return [
        HostRef(host_id=host.id, engine=host.engine, region=host.region, address=host.address)
        for host in await registered_hosts()
    ]


async def reconcile_records(client: Client) -> ReconcileStep:
    """Checks the rules for our own records and for Temporal's Schedules, notifies teams of operations that are overdue,
    then restarts lost workflows and ends operations whose change is over."""
    await report_overdue()
    violations = [*await check_store_role(), *await check_records(PATIENCE), *await check_schedules(client)]
    await findings.write(None, violations, {})
    mended = [*await end_astray(), *await recover_deliveries()]
    await _record_repairs(Action.RECORDS_REPAIR, ("records", "own"), mended)
    repairs = [*mended, *await restart_lost_workflows(client)]
    return await _step_result(violations, repairs)


async def reconcile_host(
    plans: Plans, box: SecretBox, adapters: Adapters, ref: HostRef, orphan_age: timedelta | None
) -> ReconcileStep:
    """Checks the rules of one host, with a login to some of its active databases, then repairs what it can. Removes
    orphans that were first seen `orphan_age` ago; none if it is None. Finds nothing on a host that was removed since it
    was listed."""
    host = Host(ref.host_id, ref.engine, ref.region, ref.address)
    try:
        adapter = await adapters.of_host(host.id)
        inspection = await inspect_host(host, adapter)
        admitting = active(inspection.snapshot.recorded.values())
        trying = await due(host, adapter, admitting)
        in_use = await orphans.in_use(inspection, adapter)
        await note_extensions(host.id, await adapter.extensions())
    except HostRemoved:
        return await _step_result([], [])
    except EngineError as error:
        violation = unreachable(host, error)
        await findings.write(host.id, [violation], {}, complete=False)
        return await _step_result([violation], [])
    refusals = await try_logins(box, adapter, trying)
    logins = [refusal.violation for refusal in refusals]
    violations, _ = _split_notes([mismatch.violation for mismatch in inspection.mismatches])
    shared = await scarce(host, adapter)
    strays = await check_accounts(adapter, trying)
    dumps = await check_dump_accounts(inspection.snapshot, adapter)
    held = await check_held(inspection.snapshot, adapter)
    await findings.write(
        host.id,
        [*violations, *logins, *shared, *strays.violations, *dumps, *held],
        {one.name: one.marker for one in orphans.of(inspection)},
        unlooked=_unlooked(admitting, trying, strays.skipped),
    )
    await findings.reset_first_seen(host.id, ORPHAN, in_use)
    reported, notes = _split_notes(await orphans.dated(inspection, orphan_age))
    repairs = [
        *await repair_host(inspection, adapter, orphan_age),
        *await restore_credentials(plans, box, adapter, trying, refusals),
        *await repair_accounts(box, adapter, strays.violations),
        *await remove_dump_accounts(adapter, inspection.snapshot, dumps),
        *await release_held(plans, adapter, held),
    ]
    await _record_repairs(Action.HOST_REPAIR, ("host", host.id), repairs)
    return await _step_result([*reported, *logins, *shared, *strays.violations, *dumps, *held], repairs, notes)


def _unlooked(
    admitting: Sequence[RecordedDatabase], tried: Sequence[RecordedDatabase], skipped: Sequence[UUID]
) -> list[tuple[str, str]]:
    """Rules and databases of which the run knows nothing: the active databases that it didn't try, and those whose
    accounts it couldn't compare."""
    done = {one.uuid for one in tried}
    untried = [(rule, str(one.uuid)) for one in admitting if one.uuid not in done for rule in TRIED_RULES]
    return untried + [(rule, str(uuid)) for uuid in skipped for rule in ACCOUNT_RULES]


async def _record_repairs(action: Action, subject: tuple[str, object], repairs: Sequence[str]) -> None:
    """Records in the audit log what was done on a host or in several transactions."""
    for sentence in repairs[:_MAX_SENTENCES]:
        await append(action, subject, changes={"repair": (None, sentence)})


def _split_notes(found: Sequence[Violation]) -> tuple[list[Violation], list[Violation]]:
    """Splits into violations and mere notes."""
    return [one for one in found if one.rule != FOREIGN], [one for one in found if one.rule == FOREIGN]


async def _step_result(
    violations: Sequence[Violation], repairs: list[str], notes: Sequence[Violation] = ()
) -> ReconcileStep:
    messages = [f"{one.rule}: {one.subject} {one.detail}" for one in [*violations, *notes][:_MAX_SENTENCES]]
    return ReconcileStep(
        findings=dict(Counter(violation.rule for violation in violations)),
        messages=await _with_names(messages),
        repairs=await _with_names(repairs[:_MAX_SENTENCES]),
    )


async def _with_names(sentences: list[str]) -> list[str]:
    """Adds the names of the database and its team after the uuid in each sentence."""
    uuids = [find_uuid(sentence) for sentence in sentences]
    names = await names_of([uuid for uuid in uuids if uuid is not None])

    def named(sentence: str, uuid: UUID | None) -> str:
        if uuid is None or uuid not in names:
            return sentence
        name, team = names[uuid]
        called = f'"{without_markup(name)}"' if name else "scratch database"
        owner = f'team "{without_markup(team)}"' if team is not None else "no team"
        return sentence.replace(str(uuid), f"{uuid} ({called}, {owner})", 1)

    return [named(sentence, uuid) for sentence, uuid in zip(sentences, uuids, strict=True)]


async def recover_deliveries(patience: timedelta = RESTART_AFTER) -> list[str]:
    """Wakes endpoints that have waiting deliveries and no time at which to look at them, and takes over deliveries that
    were due longer ago than `patience` while nothing was at them. Returns a sentence for each."""
    forgotten = [f"Woke endpoint {endpoint}: nothing said when." for endpoint in await waiting.wake_forgotten()]
    return forgotten + [
        f"Took up delivery {one.id} to endpoint {one.endpoint_id}: nothing was at it any more."
        for one in await waiting.take_over_lost(patience, _MOST_DELIVERIES)
    ]
