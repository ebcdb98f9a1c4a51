"""What each kind of operation does, declared once: its steps, who takes them, and up to where it can be cancelled."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

import msgspec

from app.contracts.applications import APPLY_LIMIT
from app.contracts.engine import DESTRUCTION_LIMIT


class OperationType(StrEnum):
    """What is being done to a database."""

    CREATE = "create"
    DELETE = "delete"
    UNDELETE = "undelete"
    BACKUP = "backup"
    RESTORE = "restore"
    CLONE = "clone"
    ROTATE = "rotate"
    LIMITS = "limits"
    PAUSE = "pause"
    RESUME = "resume"
    APPLY_BLUEPRINT = "apply_blueprint"


class OperationStatus(StrEnum):
    """The last three are ends. `waiting` is a retry, or a time to be waited out, with a reason."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class StepKind(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a kind of operation."""

    name: str
    activities: tuple[str, ...] = ()
    """The activities that take the step. Each call of the first one is an attempt, and each call of another one that
    fails."""
    time_limit: timedelta = timedelta(seconds=60)
    """How long an attempt may take; for an attempt that reports how far it is, the time between two reports."""
    irrevocable: bool = False
    """Once it has begun, the operation can't be cancelled."""


class OperationKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of operation that takes time."""

    workflow: str
    """The type of the workflow that works on it."""
    steps: tuple[StepKind, ...]
    """In their order."""
    deadline: timedelta
    """How long after its acceptance, or after the end of what it has to wait out, it is overdue."""

    def step_of(self, activity: str) -> StepKind | None:
        """The step that this activity takes."""
        return next((step for step in self.steps if activity in step.activities), None)


_SOON = timedelta(minutes=2)
_HOURS = timedelta(hours=2)
"""The deadline of operations that take longer the more data there is."""
_UNREPORTED = timedelta(hours=12)
"""What is built and compared after the last byte may take hours too."""
_MADE = (
    StepKind(name="place", activities=("replace_host",)),
    StepKind(name="make", activities=("create_database",)),
)
_LOAD = StepKind(name="load", activities=("fill_database", "prepare_restoration"), time_limit=_UNREPORTED)
_RESTORED = (
    # Of a new database; or, in place, of the copy by which the backup is proven first.
    _LOAD,
    # In place alone.
    StepKind(name="end_access", activities=("close_database",)),
    # Nothing of it is written before the backup's end, and what is dumped may take hours.
    StepKind(name="back_up", activities=("back_up_first",), time_limit=_UNREPORTED),
    StepKind(name="exchange", activities=("exchange_data",), time_limit=_UNREPORTED, irrevocable=True),
)

KINDS: Mapping[OperationType, OperationKind] = MappingProxyType(
    {
        OperationType.CREATE: OperationKind(
            workflow="ProvisionDatabase",
            steps=_MADE,
            deadline=timedelta(minutes=5),
        ),
        OperationType.RESTORE: OperationKind(
            # `RestoreDatabase` where it is in place.
            workflow="ProvisionDatabase",
            steps=(*_MADE, *_RESTORED, StepKind(name="open", activities=("open_database",))),
            deadline=_HOURS,
        ),
        OperationType.CLONE: OperationKind(
            workflow="ProvisionDatabase",
            steps=(*_MADE, _LOAD, StepKind(name="open", activities=("open_database",))),
            deadline=_HOURS,
        ),
        OperationType.DELETE: OperationKind(
            workflow="DeleteDatabase",
            steps=(
                StepKind(name="end_access", activities=("revoke_access",)),
                # No activity takes it: until when the data is kept is written where that is decided, and stays, however
                # slow a look at it is.
                StepKind(name="keep_data"),
                StepKind(
                    name="destroy",
                    activities=("destroy_database", "record_destroyed"),
                    time_limit=DESTRUCTION_LIMIT,
                    irrevocable=True,
                ),
            ),
            deadline=timedelta(minutes=10),
        ),
        OperationType.UNDELETE: OperationKind(
            workflow="ApplyAccess",
            steps=(StepKind(name="restore_access", activities=("apply_access",)),),
            deadline=_SOON,
        ),
        OperationType.LIMITS: OperationKind(
            workflow="ApplyLimits",
            steps=(StepKind(name="apply_limits", activities=("apply_limits", "record_limits_applied")),),
            deadline=_SOON,
        ),
        OperationType.PAUSE: OperationKind(
            workflow="ApplyAccess",
            steps=(StepKind(name="end_access", activities=("apply_access",)),),
            deadline=_SOON,
        ),
        OperationType.RESUME: OperationKind(
            workflow="ApplyAccess",
            steps=(StepKind(name="restore_access", activities=("apply_access",)),),
            deadline=_SOON,
        ),
        OperationType.ROTATE: OperationKind(
            workflow="ApplyCredentials",
            # It ends when a login has proven the new credentials; the previous ones end later, by themselves.
            steps=(StepKind(name="prove", activities=("apply_credentials",)),),
            deadline=_SOON,
        ),
        OperationType.BACKUP: OperationKind(
            workflow="BackupDatabase",
            steps=(
                StepKind(name="queue"),
                StepKind(name="dump", activities=("take_backup",), time_limit=timedelta(minutes=10)),
            ),
            deadline=timedelta(hours=6),
        ),
        OperationType.APPLY_BLUEPRINT: OperationKind(
            workflow="ApplyBlueprint",
            steps=(
                StepKind(name="queue"),
                StepKind(name="apply", activities=("apply_blueprint", "abandon_application"), time_limit=APPLY_LIMIT),
            ),
            deadline=timedelta(minutes=45),
        ),
    }
)
"""The kinds that there are so far."""

TRACKED_ACTIVITIES = frozenset(
    activity for kind in KINDS.values() for step in kind.steps for activity in step.activities
)
ENDED = (OperationStatus.SUCCEEDED, OperationStatus.FAILED, OperationStatus.CANCELLED)
