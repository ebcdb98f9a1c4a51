"""Compares our records with themselves and with every host, and reports every difference."""

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

_MAX_SENTENCES = 100
"""The maximum of sentences of each kind in the result."""


@workflow.defn(name="Reconcile")
class ReconcileWorkflow(Reconcile):
    """Handles the hosts concurrently, so that a slow one delays no other."""

    def __init__(self) -> None:
        self._messages: list[str] = []
        self._repairs: list[str] = []
        self._unchecked: list[str] = []

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
            repairs=len(self._repairs),
            messages=self._messages[:_MAX_SENTENCES],
            repair_messages=self._repairs[:_MAX_SENTENCES],
            unchecked=self._unchecked,
        )

    async def _hosts(self) -> list[HostRef]:
        try:
            return await workflow.execute_activity_method(
                ReconcileActivities.list_hosts, **policies.upkeep("list the engine hosts")
            )
        except ActivityError as failure:
            self._skip("the list of hosts", failure)
            return []

    async def _records(self) -> dict[str, int]:
        try:
            return self._add(
                await workflow.execute_activity_method(
                    ReconcileActivities.reconcile_records, **policies.upkeep("hold our records against themselves")
                )
            )
        except ActivityError as failure:
            return self._skip("our own records", failure)

    async def _host(self, host: HostRef) -> dict[str, int]:
        policy = policies.host_upkeep(host.region, f"hold {host.address} against our records")
        try:
            return self._add(
                await workflow.execute_activity_method(HostReconcileActivities.reconcile_host, host, **policy)
            )
        except ActivityError as failure:
            return self._skip(host.address, failure)

    def _add(self, step: ReconcileStep) -> dict[str, int]:
        self._messages += step.messages
        self._repairs += step.repairs
        self._report("Under way.")
        return step.findings

    def _skip(self, what: str, failure: ActivityError) -> dict[str, int]:
        """Leaves what could not be checked to the next run, which checks everything again."""
        if is_cancelled_exception(failure):
            raise failure
        self._unchecked.append(what)
        why = "no worker took the step in time" if _was_never_started(failure) else reason(failure)
        self._messages.append(f"Couldn't look at {what}: {why}.")
        self._report("Under way.")
        return {}

    def _report(self, state: str) -> None:
        found = self._messages or ["Everything is as it must be, as far as was looked."]
        workflow.set_current_details("\n\n".join([state, *self._repairs, *found]))


def _was_never_started(failure: ActivityError) -> bool:
    return isinstance(failure.cause, TimeoutError) and failure.cause.type is TimeoutType.SCHEDULE_TO_START
