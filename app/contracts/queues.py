"""Task queues, workflow ids and search attributes."""

import re
from collections.abc import Iterable
from uuid import UUID

from temporalio.common import SearchAttributeKey

CONTROL_QUEUE = "control"
"""Activities on our own database, and all workflows that no other queue has."""

WEBHOOK_QUEUE = "webhooks"
"""Deliveries: their workflows and their outgoing HTTP, apart from all other work, so that they never delay it."""


def is_region_code(text: str) -> bool:
    """Whether the text can be a region's code, such as `us-east-1`. The code is part of the names of queues, folders
    and logs."""
    return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) is not None


def engine_queue(region: str) -> str:
    """The queue for activities on the engines of one region, and for its provisionings."""
    return f"engine:{region}"


def backup_queue(region: str) -> str:
    """The queue for backups and restore tests on the engines of one region, their workflows included, apart from what
    somebody waits for."""
    return f"backups:{region}"


def restore_queue(region: str) -> str:
    """The queue for what brings data into the databases of one region, and for the backups that are taken in a
    restore: somebody waits for each."""
    return f"restores:{region}"


def engine_region(queue: str) -> str | None:
    """The region of an engine queue; None for another queue."""
    return _region(queue, "engine")


def backup_region(queue: str) -> str | None:
    """The region of a backup queue; None for another queue."""
    return _region(queue, "backups")


def restore_region(queue: str) -> str | None:
    """The region of a restore queue; None for another queue."""
    return _region(queue, "restores")


def with_transfer_queues(queues: Iterable[str]) -> list[str]:
    """These queues and, after each region's engine queue, its queues of backups and of restores: who serves the first
    serves all three."""
    served: list[str] = []
    for queue in queues:
        region = engine_region(queue)
        served += [queue] if region is None else [queue, backup_queue(region), restore_queue(region)]
    return served


def _region(queue: str, kind: str) -> str | None:
    prefix, separator, region = queue.partition(":")
    return region if separator and prefix == kind else None


def workflow_queue(workflow: str, region: str | None) -> str:
    """The queue of the workflow type. `region` is that of the workflow's database, if it has one. What begins with an
    activity on a region's queue is there too: its worker begins both without another trip through Temporal."""
    if workflow == "ProvisionDatabase" and region is not None:
        return engine_queue(region)
    if workflow in ("BackupDatabase", "ProveBackup") and region is not None:
        return backup_queue(region)
    return WEBHOOK_QUEUE if workflow == "DeliverWebhook" else CONTROL_QUEUE


def provision_workflow_id(database: UUID) -> str:
    return f"provision-database/{database}"


def delete_workflow_id(database: UUID, revision: int) -> str:
    """`revision` counts the deletions of a database that was undeleted in between, and restarts of the workflow."""
    return f"delete-database/{database}" + (f"/{revision}" if revision > 1 else "")


def limits_workflow_id(database: UUID, revision: int) -> str:
    return f"apply-limits/{database}/{revision}"


def apply_workflow_id(application: int, *, dry_run: bool) -> str:
    """A dry run has a suffix, so that Temporal's list, which shows little but the id, shows which it is."""
    return f"apply-blueprint/{application}" + ("/dry-run" if dry_run else "")


def access_workflow_id(database: UUID, revision: int) -> str:
    return f"apply-access/{database}/{revision}"


def credentials_workflow_id(database: UUID, revision: int) -> str:
    return f"apply-credentials/{database}/{revision}"


def backup_workflow_id(backup: UUID) -> str:
    return f"backup-database/{backup}"


def restore_test_workflow_id(backup: UUID, number: int) -> str:
    """`number` counts the restore tests of the backup."""
    return f"test-backup/{backup}/{number}"


def restore_workflow_id(restoration: UUID) -> str:
    """Of a restore in place, or of a database that moves."""
    return f"restore-database/{restoration}"


def remnant_workflow_id(database: UUID, host_id: int, move: UUID) -> str:
    """`move` makes the id unique when provisioning abandons the same host more than once."""
    return f"remove-remnant/{database}/{host_id}/{move}"


def restarted_workflow_id(workflow_id: str, restart: UUID) -> str:
    """The id for restarting a workflow that was lost."""
    return f"{workflow_id}/again/{restart}"


DATABASE_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterDatabase")
TEAM_ATTRIBUTE = SearchAttributeKey.for_int("HeadwaterTeam")
ENGINE_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterEngine")
REGION_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterRegion")
REQUEST_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterRequest")
LABELS_ATTRIBUTE = SearchAttributeKey.for_keyword_list("HeadwaterLabels")
"""Those of the database as they were when the workflow was started, each as `key:value`."""
SEARCH_ATTRIBUTES = (
    DATABASE_ATTRIBUTE,
    TEAM_ATTRIBUTE,
    ENGINE_ATTRIBUTE,
    REGION_ATTRIBUTE,
    REQUEST_ATTRIBUTE,
    LABELS_ATTRIBUTE,
)
