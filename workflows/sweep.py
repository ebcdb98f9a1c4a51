"""Deletes expired rows from our own database, in batches."""

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.upkeep import Sweep, SweepActivities
from workflows import policies
from workflows.engine_steps import reason

_MAX_STEPS = 50
"""The maximum for one kind in one run; the next run continues."""


@workflow.defn(name="Sweep")
class SweepWorkflow(Sweep):
    """A failure for one kind doesn't keep the others from being swept."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @workflow.run
    async def run(self) -> None:
        for what in await self._kinds():
            await self._sweep(what)

    async def _kinds(self) -> list[str]:
        try:
            return await workflow.execute_activity_method(
                SweepActivities.list_sweeps, **policies.upkeep("look what can be swept")
            )
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            self._report(f"Couldn't look what can be swept: {reason(failure)}.")
            return []

    async def _sweep(self, what: str) -> None:
        removed, more, steps = 0, True, 0
        while more and steps < _MAX_STEPS:
            try:
                swept = await workflow.execute_activity_method(
                    SweepActivities.sweep, what, **policies.upkeep(f"remove {what}")
                )
            except ActivityError as failure:
                if is_cancelled_exception(failure):
                    raise
                self._report(f"Removed {removed} {what}, then failed: {reason(failure)}.")
                return
            removed, more, steps = removed + swept.removed, swept.more, steps + 1
        self._report(f"Removed {removed} {what}{', and left more to the next run' if more else ''}.")

    def _report(self, sentence: str) -> None:
        self._lines.append(sentence)
        workflow.set_current_details("\n\n".join(self._lines))
