"""The rules by which operations and the state of their databases agree, once all is at rest: broken ones, in words."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

ROWS = """
SELECT o.id, o.uuid::text, o.type, o.status, o.revision, o.steps::text AS steps, o.reason ->> 'code' AS code,
       o.finished_at IS NOT NULL AS finished, d.uuid::text AS database, d.status AS state,
       d.provisioned_at IS NOT NULL AS provisioned, d.destroyed_at IS NOT NULL AS destroyed,
       d.limits_revision, d.limits_applied, d.access_revision, d.access_applied, a.status AS application
FROM operations o JOIN databases d ON d.id = o.database_id
LEFT JOIN blueprint_applications a ON o.type = 'apply_blueprint' AND a.id = (o.undo ->> 'application')::bigint
ORDER BY o.id
"""
_LIVES = ("create", "delete", "undelete")
_ACCESS = ("pause", "resume")
_DONE = {"succeeded", "skipped"}
_ENDED = {*_DONE, "failed"}
Row = Mapping[str, Any]


def disagreements(rows: Iterable[Row]) -> list[str]:
    """One sentence for each."""
    by_database: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_database[row["database"]].append(row)
    return [
        f"{found[-1]['database']} ({found[-1]['state']}): {fault}"
        for found in by_database.values()
        for fault in (*_of_each(found), *_of_all(found))
    ]


def _of_each(found: list[Row]) -> Iterable[str]:
    for row in found:
        name = f"{row['type']} {row['uuid']} is {row['status']} ({row['code']})"
        steps = {step["name"]: step["status"] for step in msgspec.json.decode(row["steps"])}
        if not row["finished"] and not _waits_out_its_grace(row):
            yield f"{name}, and everything else is at rest"
        elif row["finished"] and set(steps.values()) - (_DONE if row["status"] == "succeeded" else _ENDED):
            yield f"{name}, with the steps {steps}"
        elif not _fits(row):
            yield f"{name}, and the database doesn't say so: {dict(row)}"


def _waits_out_its_grace(row: Row) -> bool:
    """Nothing more is to be done for it until then."""
    return bool(row["status"] == "waiting" and row["code"] == "grace_period")


def _fits(row: Row) -> bool:
    match row["type"], row["status"]:
        case "create", "succeeded":
            return bool(row["provisioned"])
        case "create", _:
            return row["state"] == "deleted" and not row["provisioned"]
        case "delete", "succeeded":
            return bool(row["destroyed"])
        case "limits", "succeeded":
            return bool(row["limits_applied"] >= row["revision"])
        case (("pause" | "resume" | "undelete"), "succeeded"):
            return bool(row["access_applied"] >= row["revision"])
        case "apply_blueprint", status:
            return bool((row["application"] in ("completed", "rolled_back")) == (status == "succeeded"))
    return True


def _of_all(found: list[Row]) -> Iterable[str]:
    """What the newest of each kind says of the database now."""
    state = found[-1]["state"]
    lives = [row for row in found if row["type"] in _LIVES]
    if lives:
        newest = lives[-1]
        gone = newest["type"] == "delete" and newest["status"] == "succeeded"
        deleted = gone or _waits_out_its_grace(newest)
        if gone != bool(newest["destroyed"]) or deleted != (state == "deleted"):
            yield f"the last of its life is {newest['type']}, {newest['status']}"
    access = [row for row in found if row["type"] in _ACCESS]
    if access and state in ("active", "paused"):
        newest = access[-1]
        paused = (newest["type"] == "pause") == (newest["status"] == "succeeded")
        if paused != (state == "paused"):
            yield f"the last of its access is {newest['type']}, {newest['status']}"
    row = found[-1]
    if state in ("active", "paused") and row["limits_applied"] < row["limits_revision"]:
        yield "its limits are not in force"
    if state in ("active", "paused") and row["access_applied"] < row["access_revision"]:
        yield "its access is not in force"
