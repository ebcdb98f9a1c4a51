"""Holding our records against themselves and against the engine hosts, on a Schedule."""

from abc import ABC, abstractmethod

from temporalio import activity, workflow

from app.contracts.base import Contract, Engine


class HostRef(Contract, frozen=True, kw_only=True):
    host_id: int
    engine: Engine
    region: str
    address: str
    """The host's `host:port`, for people."""


class ReconcileStep(Contract, frozen=True, kw_only=True):
    """What one step found and did."""

    findings: dict[str, int]
    """How many of each rule."""
    told: list[str]
    """The first of them, in words."""
    deeds: list[str]
    """What was put right, and what couldn't be."""


class ReconcileOutcome(Contract, frozen=True, kw_only=True):
    """What a run found and did, over all hosts."""

    findings: dict[str, int]
    deeds: int
    told: list[str]
    """The first findings in words, with the names of the databases that they are about."""
    done: list[str]
    """The same of what was put right, or couldn't be."""
    not_looked_at: list[str]
    """The addresses of hosts that no step came to an end on."""


class ReconcileActivities(ABC):
    """On our own records."""

    @activity.defn(name="list_hosts")
    @abstractmethod
    async def list_hosts(self) -> list[HostRef]:
        """Every registered engine host."""

    @activity.defn(name="reconcile_records")
    @abstractmethod
    async def reconcile_records(self) -> ReconcileStep:
        """Holds our records against themselves, and keeps what it finds."""


class HostReconcileActivities(ABC):
    """On the engine queue of the host's region."""

    @activity.defn(name="reconcile_host")
    @abstractmethod
    async def reconcile_host(self, host: HostRef) -> ReconcileStep:
        """Holds one host against our records, keeps what it finds, and puts right what it can: rights that a tenant
        lacks, and orphans that were first seen long ago. A host that doesn't answer is a finding, not a failure."""


@workflow.defn(name="Reconcile")
class Reconcile(ABC):
    """Compares our records with themselves and with every host, and says what isn't as it must be."""

    @workflow.run
    @abstractmethod
    async def run(self) -> ReconcileOutcome: ...
