"""All timeouts and retry policies.

Because of heartbeats a killed worker costs only seconds: Temporal gives an activity to another worker as soon as they
stop, long before its time limit.
"""

from datetime import timedelta

from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import ActivityConfig, LocalActivityConfig

from app.contracts import retries
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_queue, engine_queue, restore_queue
from app.contracts.restores import TRANSFER_LIMIT

_BACKUP_HEARTBEAT = timedelta(seconds=10)
"""Longer than that of short steps: compression and the tools may take all of a small machine for seconds."""
ENGINE_STEP = timedelta(seconds=60)
_LEFT_TO_ITSELF = timedelta(days=36_500)
"""The time limit of a dump and of a restore test. These end at a limit of their own, which follows from the size of the
data. Temporal takes no activity without a limit, but its limit is never to be the first: the next attempt would end in
the same way."""
_MAX_ATTEMPTS = 60
_UPKEEP_ATTEMPTS = 5
_NOBODY_WAITS = Priority(priority_key=5)
"""The lowest priority. The fairness among equals stays as the workflow has it."""


def local_control(summary: str) -> LocalActivityConfig:
    """A short transaction on our own database, tried once within the workflow task, for less than the task's time
    limit."""
    return LocalActivityConfig(
        summary=summary,
        start_to_close_timeout=retries.LOCAL_STEP,
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def local_create(summary: str) -> LocalActivityConfig:
    """A first attempt in the worker that runs the workflow, near the host. Nearly every database is created by it,
    at a third of the cost of a normal activity. A worker that dies costs the workflow task's time limit."""
    return LocalActivityConfig(
        summary=summary,
        start_to_close_timeout=timedelta(seconds=15),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def control(summary: str) -> ActivityConfig:
    """A short transaction on our own database, retried until it succeeds."""
    return ActivityConfig(
        task_queue=CONTROL_QUEUE,
        summary=summary,
        start_to_close_timeout=timedelta(seconds=20),
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
        ),
    )


def upkeep(summary: str) -> ActivityConfig:
    """A step of a scheduled run on our own database. After these attempts it is left to the next run."""
    return ActivityConfig(
        task_queue=CONTROL_QUEUE,
        summary=summary,
        priority=_NOBODY_WAITS,
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
            maximum_attempts=_UPKEEP_ATTEMPTS,
        ),
    )


def host_upkeep(region: str, summary: str) -> ActivityConfig:
    """A scheduled inspection of one engine host. A host that takes longer, and a region that no worker serves, are
    left to the next run, which can't begin before this one ends."""
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=_NOBODY_WAITS,
        schedule_to_start_timeout=timedelta(seconds=60),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=0.5), maximum_attempts=2),
    )


def engine(
    region: str, round_: int, summary: str, *, urgent: bool, time_limit: timedelta = ENGINE_STEP
) -> ActivityConfig:
    """Work on a tenant engine, with a limited number of attempts, so that the workflow can report in between what it
    waits for. A run that doesn't wait between the rounds itself has more attempts in later ones, because retries
    within an activity add nothing to the history but rounds do. Work that isn't `urgent` has a lower priority, so that
    removals never delay a revocation."""
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=Priority.default if urgent else _NOBODY_WAITS,
        start_to_close_timeout=time_limit,
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
            maximum_attempts=min(retries.ATTEMPTS_AT_ONCE * 2**round_, _MAX_ATTEMPTS),
        ),
    )


def transfer(region: str, summary: str, *, urgent: bool = True) -> ActivityConfig:
    """Moving the data of a database, which takes as long as there is data. As many attempts follow each other at once
    as for an engine's step; each begins from the beginning."""
    return ActivityConfig(
        task_queue=restore_queue(region),
        summary=summary,
        priority=Priority.default if urgent else _NOBODY_WAITS,
        start_to_close_timeout=TRANSFER_LIMIT,
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=5),
            maximum_attempts=retries.ATTEMPTS_AT_ONCE,
        ),
    )


def attempt(region: str, summary: str) -> ActivityConfig:
    """Scheduled work on a region's engines that is repeated anyway: it is tried once, or not at all if no worker
    takes it."""
    return ActivityConfig(
        task_queue=engine_queue(region),
        summary=summary,
        priority=_NOBODY_WAITS,
        schedule_to_start_timeout=timedelta(seconds=30),
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def backup(region: str, summary: str, *, in_restore: bool = False) -> ActivityConfig:
    """A dump, or a restore test. It ends by itself when it takes longer than its data needs, and is tried once: the
    workflow waits between the attempts. Its priority and its fairness are the workflow's. A dump that a restore waits
    for has the restore's queue: on the backups' queue, dumps that give way may keep every slot for hours."""
    return ActivityConfig(
        task_queue=restore_queue(region) if in_restore else backup_queue(region),
        summary=summary,
        start_to_close_timeout=_LEFT_TO_ITSELF,
        heartbeat_timeout=_BACKUP_HEARTBEAT,
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def local_webhook(endpoint: int) -> LocalActivityConfig:
    """A delivery of version 0.1.0, handed over in the worker that runs its workflow."""
    return LocalActivityConfig(
        summary=f"attempt 1 to deliver to endpoint {endpoint}",
        start_to_close_timeout=timedelta(seconds=60),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


def webhook(endpoint: int, round_: int) -> ActivityConfig:
    """The same as a normal activity, after it failed."""
    return ActivityConfig(
        task_queue=WEBHOOK_QUEUE,
        summary=f"attempt 1 to deliver to endpoint {endpoint}",
        priority=Priority(priority_key=2, fairness_key=f"endpoint-{endpoint}"),
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=retries.HEARTBEAT,
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=0.2),
            backoff_coefficient=2,
            maximum_interval=timedelta(seconds=30),
            maximum_attempts=min(3 * 2**round_, _MAX_ATTEMPTS),
        ),
    )
