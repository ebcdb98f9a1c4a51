"""Telling a team's endpoints of events: the workflow, and the step that it is made of."""

from abc import ABC, abstractmethod
from enum import StrEnum
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.base import Contract, WorkflowInput


class DeliveryStatus(StrEnum):
    """Interface specification, section 3.4."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DeliverWebhookInput(WorkflowInput, frozen=True, kw_only=True):
    """One event for one endpoint. Address, secret and payload are read from our own database for the attempt."""

    delivery: int
    endpoint: int
    team_id: int
    event: str
    database: UUID | None = None
    round: int = 0
    """How often the delivery was asked for again before."""


class AttemptRef(Contract, frozen=True, kw_only=True):
    """The first attempt of a delivery's round."""

    delivery: int
    round: int


class AttemptOutcome(Contract, frozen=True, kw_only=True):
    """What became of an attempt."""

    status: DeliveryStatus
    spent: int
    """Attempts of this round by now; none where the delivery waits for its first."""
    wait_seconds: float = 0
    """Until the next attempt, where one is to follow."""
    words: str = ""
    """What happened, for people."""


@workflow.defn(name="DeliverWebhook")
class DeliverWebhook(ABC):
    """Makes the first attempt. What is still pending after it waits as a row, and costs Temporal nothing."""

    @workflow.run
    @abstractmethod
    async def run(self, request: DeliverWebhookInput) -> None: ...


class WebhookActivities(ABC):
    """Outgoing HTTP. They run on the webhook queue."""

    @activity.defn(name="attempt_delivery")
    @abstractmethod
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        """Sends once and records it, or has the delivery wait for its endpoint; in either case within seconds. One that
        was recorded, with its answer lost, is not made again. A receiver's failure is an outcome; it fails only where
        our own side does."""
