"""A Temporal worker on a machine that may stall."""

from temporalio.worker import Worker

from tests.support.waiting import LIMIT_SECONDS


def patient(worker: Worker) -> Worker:
    """The same one, which takes no stall for a deadlock of a workflow: after two seconds it would fail the task and try
    again, so that local activities run twice and lines come twice."""
    workflows = worker._workflow_worker
    # None where the worker has only activities.
    if workflows is not None:
        # The SDK has no setting for it, except to debug, which takes the workflows' threads away.
        assert hasattr(workflows, "_deadlock_timeout_seconds"), "the SDK has another name for it"
        workflows._deadlock_timeout_seconds = int(LIMIT_SECONDS)
    return worker
