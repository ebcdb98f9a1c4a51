"""Compares our records with themselves and with every host, and says what isn't as it must be."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType, is_cancelled_exception

from app.contracts.reconcile import (
    HostReconcileActivities,
    HostRef,
    Reconcile,
    ReconcileActivities,
    ReconcileOutcome,
    ReconcileStep,
)
from workflows import policies
from workflows.engine_steps import reason

_TOLD = 100
"""Sentences of each kind in the result."""


@workflow.defn(name="Reconcile")
class ReconcileWorkflow(Reconcile):
    """The hosts side by side, so that a sick one holds up no other."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._done: list[str] = []
        self._not_looked_at: list[str] = []

    @workflow.run
    async def run(self) -> ReconcileOutcome:
        hosts = await self._hosts()
        counts: dict[str, int] = {}
        for found in [await self._records(), *await asyncio.gather(*(self._host(host) for host in hosts))]:
            for rule in sorted(found):
                counts[rule] = counts.get(rule, 0) + found[rule]
        self._report("Done.")
        return ReconcileOutcome(
            findings=counts,
            deeds=len(self._done),
            told=self._found[:_TOLD],
            done=self._done[:_TOLD],
            not_looked_at=self._not_looked_at,
        )

    async def _hosts(self) -> list[HostRef]:
        try:
            return await workflow.execute_activity_method(
                ReconcileActivities.list_hosts, **policies.upkeep("list the engine hosts")
            )
        except ActivityError as failure:
            self._give_up("the list of hosts", failure)
            return []

    async def _records(self) -> dict[str, int]:
        try:
            return self._take(
                await workflow.execute_activity_method(
                    ReconcileActivities.reconcile_records, **policies.upkeep("hold our records against themselves")
                )
            )
        except ActivityError as failure:
            return self._give_up("our own records", failure)

    async def _host(self, host: HostRef) -> dict[str, int]:
        policy = policies.host_upkeep(host.region, f"hold {host.address} against our records")
        try:
            return self._take(
                await workflow.execute_activity_method(HostReconcileActivities.reconcile_host, host, **policy)
            )
        except ActivityError as failure:
            return self._give_up(host.address, failure)

    def _take(self, reconciled: ReconcileStep) -> dict[str, int]:
        self._found += reconciled.told
        self._done += reconciled.deeds
        self._report("Under way.")
        return reconciled.findings

    def _give_up(self, what: str, failure: ActivityError) -> dict[str, int]:
        """Until the next run: it looks at everything again."""
        if is_cancelled_exception(failure):
            raise failure
        self._not_looked_at.append(what)
        why = "no worker took the step in time" if _was_not_begun(failure) else reason(failure)
        self._found.append(f"Couldn't look at {what}: {why}.")
        self._report("Under way.")
        return {}

    def _report(self, state: str) -> None:
        found = self._found or ["Everything is as it must be, as far as was looked."]
        workflow.set_current_details("\n\n".join([state, *self._done, *found]))


def _was_not_begun(failure: ActivityError) -> bool:
    return isinstance(failure.cause, TimeoutError) and failure.cause.type is TimeoutType.SCHEDULE_TO_START
