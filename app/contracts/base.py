"""What every contract uses: the base struct, and the enums that all layers share."""

from enum import StrEnum

import msgspec


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value that crosses a process boundary: the input or result of a workflow or an activity.

    The process at the other end may have another version. A field that it doesn't know may change what is to be done:
    it refuses the value, and a process that knows the field takes it later. A field with its default says nothing new
    and is left out, so that every version takes the value. So a field that is added has a default, and no field goes,
    or gets a default or another one later.
    """


class WorkflowInput(Contract, frozen=True, kw_only=True):
    """The input of a workflow that an API request may start."""

    request_id: str | None = None
    """The id of that request, so that its workflows can be found; None for scheduled work."""


class Engine(StrEnum):
    """The database engines that Headwater provisions. MariaDB is a flavour of `mysql`."""

    POSTGRES = "postgres"
    MYSQL = "mysql"


class DatabaseStatus(StrEnum):
    """The status of a database. It is `active` once a login with its credentials has worked. Nobody is let into one
    that is `paused` or `deleted`; blueprints and questions take one that is `active`."""

    PROVISIONING = "provisioning"
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class PauseReason(StrEnum):
    """Why a database is paused. What an operator paused, only an operator resumes."""

    OPERATOR = "operator"
    TEAM = "team"
    """By the team that owns it."""
    RUNTIME = "runtime"
    """The plan's hours of this month are used up."""
    STORAGE = "storage"
    """The database grew although its writes were frozen."""
