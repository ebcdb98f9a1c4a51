"""What every contract is made of: the struct base and the vocabularies that all layers share."""

from enum import StrEnum

import msgspec


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """One value that crosses a boundary: an activity's or workflow's input or result."""


class WorkflowInput(Contract, frozen=True, kw_only=True):
    """The input of a workflow that a request may ask for."""

    request_id: str | None = None
    """Of the request, for whoever looks for what came of it; None for upkeep."""


class Engine(StrEnum):
    """The database engines that Headwater provisions. MariaDB is a flavour of `mysql`."""

    POSTGRES = "postgres"
    MYSQL = "mysql"


class DatabaseStatus(StrEnum):
    """Interface specification, section 3.1."""

    PROVISIONING = "provisioning"
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class PauseReason(StrEnum):
    """Why a database is paused. What an operator paused, only an operator resumes."""

    OPERATOR = "operator"
    RUNTIME = "runtime"
    """Its plan's hours of this month are used up."""
    STORAGE = "storage"
    """It grew although its writes were frozen."""
