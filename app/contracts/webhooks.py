"""Telling a team's endpoints of events: the workflows, and the steps that they are made of."""

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
    """One event for one endpoint. Address, secret and payload are read from our own database for each attempt."""

    delivery: int
    endpoint: int
    team_id: int
    event: str
    database: UUID | None = None
    round: int = 0
    """How often the delivery was asked for again before."""
    spent: int = 0
    """Attempts of this round that were made before this run."""
    wait_seconds: float = 0
    """Before the first attempt of this run."""
    supersedes: str | None = None
    """The workflow of the round before, which may still wait for its next attempt."""


class AttemptRef(Contract, frozen=True, kw_only=True):
    """Which attempt of a delivery: the one that follows so many of that round."""

    delivery: int
    round: int
    spent: int
    at_hand: bool = False
    """Made within the workflow's own task, which is only for endpoints that don't keep one waiting."""


class AttemptOutcome(Contract, frozen=True, kw_only=True):
    """What became of an attempt."""

    status: DeliveryStatus
    spent: int
    """Attempts of this round by now."""
    wait_seconds: float = 0
    """Until the next attempt, where one is to follow; 0 where it was not made at hand."""
    words: str = ""
    """What happened, for people."""


class EndDeliveriesInput(WorkflowInput, frozen=True, kw_only=True):
    endpoint: int
    team_id: int
    after: int = 0
    """The last delivery that an earlier run of this workflow woke."""
    woken: int = 0
    """How many those were."""


class DeliveriesPage(Contract, frozen=True, kw_only=True):
    endpoint: int
    after: int = 0
    """The last delivery of the page before."""


class WaitingDeliveries(Contract, frozen=True, kw_only=True):
    last: int | None
    """The last delivery of this page; None when there are no more."""
    workflow_ids: list[str]


@workflow.defn(name="DeliverWebhook")
class DeliverWebhook(ABC):
    """Sends until the receiver has taken it, the schedule is spent, or nobody wants it any more."""

    @workflow.run
    @abstractmethod
    async def run(self, request: DeliverWebhookInput) -> None: ...


@workflow.defn(name="EndDeliveries")
class EndDeliveries(ABC):
    """Wakes what still waits to be sent to an endpoint that was revoked, so that it ends."""

    @workflow.run
    @abstractmethod
    async def run(self, request: EndDeliveriesInput) -> None: ...


class WebhookActivities(ABC):
    """Outgoing HTTP. They run on the webhook queue."""

    @activity.defn(name="attempt_delivery")
    @abstractmethod
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        """Sends once and records it, or says why not and when to come again. One that was recorded, with its answer
        lost, is not made again. A receiver's failure is an outcome; it fails only where our own side does."""


class DeliveryRecords(ABC):
    """What is to be delivered, in our own database. They run on the control queue."""

    @activity.defn(name="list_ended_deliveries")
    @abstractmethod
    async def list_ended_deliveries(self, page: DeliveriesPage) -> WaitingDeliveries:
        """The workflows of a revoked endpoint's deliveries that a revocation ended."""
