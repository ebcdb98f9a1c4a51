"""Every timeout and retry policy, in one place.

Heartbeats are what makes a killed worker cost seconds: Temporal gives an activity to another worker as soon as
they stop, long before its own time limit.
"""

from datetime import timedelta

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityConfig, LocalActivityConfig

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue

_HEARTBEAT = timedelta(seconds=3)
ENGINE_STEP = timedelta(seconds=60)
_MAX_ATTEMPTS = 60
_UPKEEP_ATTEMPTS = 5
_NOBODY_WAITS = Priority(priority_key=5)
"""The lowest; whose turn it is among equals stays as the workflow has it."""


def local_control(summary: str) -> LocalActivityConfig:
    """A short transaction on our own database, tried once within the workflow task, and shorter than its time limit."""
    return LocalActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=1.5),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def local_create(summary: str) -> LocalActivityConfig:
    """A first attempt in the worker that runs the workflow, which is next to the host: nearly every database is made by
    it, at a third of what an activity of its own costs. A worker that dies costs the workflow task's time limit."""
    return LocalActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=15),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def control(summary: str) -> ActivityConfig:
    """A short transaction on our own database, tried until it succeeds."""
    return ActivityConfig(
        task_queue=CONTROL_QUEUE,
        summary=summary,
        start_to_close_timeout=timedelta(seconds=20),
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
        ),
    )


def upkeep(summary: str) -> ActivityConfig:
    """A step of a scheduled run on our own database. What still fails after these attempts is left to the next run."""
    return ActivityConfig(
        task_queue=CONTROL_QUEUE,
        summary=summary,
        priority=_NOBODY_WAITS,
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
            maximum_attempts=_UPKEEP_ATTEMPTS,
        ),
    )


def host_upkeep(region: str, summary: str) -> ActivityConfig:
    """A scheduled look at one engine host. A host on which it takes longer, and a region that no worker serves, are
    left to the next run: meanwhile that one can't begin."""
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=_NOBODY_WAITS,
        schedule_to_start_timeout=timedelta(seconds=60),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_attempts=2),
    )


def engine(
    region: str, round_: int, summary: str, *, urgent: bool, time_limit: timedelta = ENGINE_STEP
) -> ActivityConfig:
    """Work on a tenant engine, a bounded number of attempts, so that the workflow can say in between what it
    waits for. Later rounds have more attempts: retries within an activity leave no trace in the history, rounds do.
    What nobody waits for goes behind what somebody does, so that removals never hold up a revocation.
    """
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=Priority.default if urgent else _NOBODY_WAITS,
        start_to_close_timeout=time_limit,
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
            maximum_attempts=min(3 * 2**round_, _MAX_ATTEMPTS),
        ),
    )


def attempt(region: str, summary: str) -> ActivityConfig:
    """Upkeep on a region's engines that comes again by itself: one try is enough, and where nobody takes it up none."""
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=_NOBODY_WAITS,
        schedule_to_start_timeout=timedelta(seconds=30),
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def local_webhook(endpoint: int) -> LocalActivityConfig:
    """A first attempt in the worker that runs the workflow: most are delivered by it, at half the cost. It answers
    before the workflow task would have to report that it is alive, or goes on without the workflow."""
    return LocalActivityConfig(
        summary=f"attempt 1 to deliver to endpoint {endpoint}",
        start_to_close_timeout=timedelta(seconds=60),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def webhook(endpoint: int, round_: int) -> ActivityConfig:
    """The same once it has failed on our own side, which alone is retried. Each endpoint has its turn."""
    return ActivityConfig(
        task_queue=WEBHOOK_QUEUE,
        summary=f"attempt 1 to deliver to endpoint {endpoint}",
        priority=Priority(priority_key=2, fairness_key=f"endpoint-{endpoint}"),
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=_HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=30),
            maximum_attempts=min(3 * 2**round_, _MAX_ATTEMPTS),
        ),
    )
