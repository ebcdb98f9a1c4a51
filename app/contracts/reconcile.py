"""Comparing our records with themselves and with the engine hosts, on a Schedule."""

from abc import ABC, abstractmethod

import msgspec
from temporalio import activity, workflow

from app.contracts.base import Contract, Engine


class HostRef(Contract, frozen=True, kw_only=True):
    host_id: int
    engine: Engine
    region: str
    address: str
    """The host's `host:port`, for display."""


class ReconcileStep(Contract, frozen=True, kw_only=True):
    """What one step found and repaired."""

    findings: dict[str, int]
    """The number of findings of each rule."""
    # Histories of 0.1.0 have the names `told` and `deeds`.
    messages: list[str] = msgspec.field(name="told")
    """The first findings, a sentence each."""
    repairs: list[str] = msgspec.field(name="deeds")
    """What was repaired and what couldn't be, a sentence each."""


class ReconcileOutcome(Contract, frozen=True, kw_only=True):
    """What a run found and repaired, over all hosts."""

    findings: dict[str, int]
    """The number of findings of each rule."""
    repairs: int
    messages: list[str]
    """The first findings, a sentence each, with the names of their databases."""
    repair_messages: list[str]
    """The first repairs and failed repairs, a sentence each."""
    unchecked: list[str]
    """Addresses of the hosts for which no step finished."""


class ReconcileActivities(ABC):
    """On our own records."""

    @activity.defn(name="list_hosts")
    @abstractmethod
    async def list_hosts(self) -> list[HostRef]:
        """Every registered engine host."""

    @activity.defn(name="reconcile_records")
    @abstractmethod
    async def reconcile_records(self) -> ReconcileStep:
        """Checks the consistency of our own records, and stores the findings."""


class HostReconcileActivities(ABC):
    """On the engine queue of the host's region."""

    @activity.defn(name="reconcile_host")
    @abstractmethod
    async def reconcile_host(self, host: HostRef) -> ReconcileStep:
        """Compares one host with our records, stores the findings, and repairs what it can: rights that a tenant lacks,
        and orphans that are old enough to be removed. A host that doesn't answer is a finding, not a failure."""


@workflow.defn(name="Reconcile")
class Reconcile(ABC):
    """Compares our records with themselves and with every host, and reports every difference."""

    @workflow.run
    @abstractmethod
    async def run(self) -> ReconcileOutcome: ...
