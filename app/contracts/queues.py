"""Task queues, workflow ids and search attributes: the names under which work is found."""

import re
from uuid import UUID

from temporalio.common import SearchAttributeKey

CONTROL_QUEUE = "control"
"""All workflows that no other queue has, and the activities on our own database."""

WEBHOOK_QUEUE = "webhooks"
"""Deliveries: their workflows, and outgoing HTTP. So many of them as there may be, they never hold up another."""


def is_region_code(text: str) -> bool:
    """Whether a region may be called so: `us-east-1`. Its code is part of the names of queues, folders and logs."""
    return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) is not None


def engine_queue(region: str) -> str:
    """Activities that touch the engines of one region, and the provisionings there."""
    return f"engine:{region}"


def engine_region(queue: str) -> str | None:
    """The region whose engine queue it is, if it is one."""
    prefix, separator, region = queue.partition(":")
    return region if separator and prefix == "engine" else None


def workflow_queue(workflow: str, region: str | None) -> str:
    """The queue of the workflow of that name; `region` is that of the database which it is about, if any."""
    if workflow == "ProvisionDatabase" and region is not None:
        return engine_queue(region)
    return WEBHOOK_QUEUE if workflow == "DeliverWebhook" else CONTROL_QUEUE


def provision_workflow_id(database: UUID) -> str:
    return f"provision-database/{database}"


def delete_workflow_id(database: UUID, revision: int) -> str:
    """`revision` counts the deletions of one that was undeleted in between, and the workflows begun anew."""
    return f"delete-database/{database}" + (f"/{revision}" if revision > 1 else "")


def limits_workflow_id(database: UUID, revision: int) -> str:
    return f"apply-limits/{database}/{revision}"


def apply_workflow_id(application: int, *, dry_run: bool) -> str:
    """A dry run can be told in Temporal's list, which shows little but the id."""
    return f"apply-blueprint/{application}" + ("/dry-run" if dry_run else "")


def access_workflow_id(database: UUID, revision: int) -> str:
    return f"apply-access/{database}/{revision}"


def remnant_workflow_id(database: UUID, host_id: int, move: UUID) -> str:
    """`move` tells apart the times that provisioning gave up on the same host."""
    return f"remove-remnant/{database}/{host_id}/{move}"


def delivery_workflow_id(event: UUID | str, endpoint: int, round_: int = 0) -> str:
    """`event` is the uuid of an event, or the id of a ping. `round_` counts how often it was asked for again."""
    return f"deliver-webhook/{event}/{endpoint}" + (f"/{round_}" if round_ else "")


def restarted_workflow_id(workflow_id: str, restart: UUID) -> str:
    """Of a workflow that is begun anew because nothing works on the first any more."""
    return f"{workflow_id}/again/{restart}"


DATABASE_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterDatabase")
TEAM_ATTRIBUTE = SearchAttributeKey.for_int("HeadwaterTeam")
ENGINE_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterEngine")
REGION_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterRegion")
REQUEST_ATTRIBUTE = SearchAttributeKey.for_keyword("HeadwaterRequest")
SEARCH_ATTRIBUTES = (DATABASE_ATTRIBUTE, TEAM_ATTRIBUTE, ENGINE_ATTRIBUTE, REGION_ATTRIBUTE, REQUEST_ATTRIBUTE)
