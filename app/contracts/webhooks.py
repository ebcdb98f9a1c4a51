"""Delivering events to a team's webhook endpoints: what a delivery comes to, and the workflow that versions up to 0.1.0
began for each, with its activity."""

from abc import ABC, abstractmethod
from enum import StrEnum
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.base import Contract, WorkflowInput


class DeliveryStatus(StrEnum):
    """The status of a delivery. It is `pending` while another attempt is to come. It ends as `delivered` when an answer
    was 200 to 299, else as `failed`: after the last attempt, or when its endpoint is revoked."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class DeliverWebhookInput(WorkflowInput, frozen=True, kw_only=True):
    """One event for one endpoint. The attempt reads address, secret and payload from our own database."""

    delivery: int
    endpoint: int
    team_id: int
    event: str
    database: UUID | None = None
    round: int = 0
    """How often redelivery was requested before."""


class AttemptRef(Contract, frozen=True, kw_only=True):
    """Identifies the first attempt of a round of a delivery."""

    delivery: int
    round: int


class AttemptOutcome(Contract, frozen=True, kw_only=True):
    """The result of an attempt."""

    status: DeliveryStatus
    spent: int
    """Attempts made in this round; 0 when the delivery waits for its first."""
    wait_seconds: float = 0
    """The time until the next attempt, if there is one."""
    words: str = ""
    """What happened, for display."""


@workflow.defn(name="DeliverWebhook")
class DeliverWebhook(ABC):
    """Began a delivery up to version 0.1.0. Those that are open during an upgrade hand it over and end."""

    @workflow.run
    @abstractmethod
    async def run(self, request: DeliverWebhookInput) -> None: ...


class WebhookActivities(ABC):
    """Outgoing HTTP, on the webhook queue."""

    @activity.defn(name="attempt_delivery")
    @abstractmethod
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        """Has the delivery wait for its endpoint, and ends. Nothing where it is over."""
