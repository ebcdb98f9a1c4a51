"""Labels: what they may be, how they change, and what they survive."""

from typing import Any
from uuid import UUID

from app.databases.labels import MOST_LABELS
from app.store.session import fetch
from tests.api.test_protection import made
from tests.api.test_undeletions import undeleted
from tests.support.answers import body_of, data_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.lone_pool import LonePool
from tests.support.moves import events_of
from tests.support.together import together

LABELS = {"env": "production", "owner": "team a: b"}


async def found(caller: Caller, label: str) -> list[str]:
    answer = await caller.get("/databases", params={"label": label})
    return [item["uuid"] for item in body_of(answer)["data"]]


async def indexed(uuid: str) -> list[str]:
    return [
        row["label"]
        for row in await fetch(
            "SELECT label FROM database_labels WHERE database_id = (SELECT id FROM databases WHERE uuid = $1)"
            " ORDER BY label",
            UUID(uuid),
        )
    ]


async def test_labels_are_in_answers_and_events(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = data_of(await caller.create(labels=LABELS), 202)
    assert made["labels"] == LABELS
    assert data_of(await caller.get(f"/databases/{made['uuid']}"))["labels"] == LABELS
    assert body_of(await caller.get("/databases"))["data"][0]["labels"] == LABELS
    (payload,) = await fetch("SELECT payload -> 'data' ->> 'labels' AS labels FROM events")
    assert "team a: b" in payload["labels"]
    assert await found(caller, "owner:team a: b") == [made["uuid"]]
    assert data_of(await caller.create(), 202)["labels"] == {}


async def test_a_create_from_the_pool_has_its_labels(pool: LonePool) -> None:
    caller = await pool.api.caller()
    await pool.add_members(1, await pool.api.add_host())
    made = data_of(await caller.create(labels=LABELS), 201)
    assert made["labels"] == LABELS
    assert await found(caller, "env:production") == [made["uuid"]]


async def test_a_change_names_what_it_changes(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(labels=LABELS), 202)["uuid"]
    path = f"/databases/{uuid}"
    changed = data_of(await caller.patch(path, {"labels": {"env": "staging", "cost": ""}}))
    assert changed["labels"] == {"cost": "", "env": "staging", "owner": "team a: b"}
    assert await found(caller, "env:production") == []
    assert await found(caller, "cost:") == [uuid]
    changed = data_of(await caller.patch(path, {"labels": {"owner": None, "never": None}}))
    assert changed["labels"] == {"cost": "", "env": "staging"}
    assert await indexed(uuid) == ["cost:", "env:staging"]
    assert data_of(await caller.patch(path, {"name": "other"}))["labels"] == changed["labels"]
    assert data_of(await caller.patch(path, {"labels": {}}))["labels"] == changed["labels"]
    assert data_of(await caller.patch(path, {"labels": None}))["labels"] == {}
    assert await indexed(uuid) == []


@together(
    ("labels", "field"),
    [
        ({"Env": "x"}, "labels.Env"),
        ({"": "x"}, "labels."),
        ({"-a": "x"}, "labels.-a"),
        ({"a:b": "x"}, "labels.a:b"),
        ({"a" * 64: "x"}, "labels." + "a" * 63),
        ({"a": "x\ny"}, "labels.a"),
        ({"a": "x\u0085"}, "labels.a"),
        ({"a": "é" * 256}, "labels.a"),
        ({"b": "x", "a": 1}, "labels.a"),
        ({"a" * 64: 1}, "labels." + "a" * 63),
        ({f"k{number}": "x" for number in range(MOST_LABELS + 1)}, "labels"),
        (["a:b"], "labels"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
async def test_what_cannot_be_a_label(lone: LoneApi, labels: Any, field: str) -> None:
    caller = await lone.caller()
    assert field_of(await caller.create(labels=labels)) == field
    uuid = data_of(await caller.create(), 202)["uuid"]
    assert field_of(await caller.patch(f"/databases/{uuid}", {"labels": labels})) == field
    assert data_of(await caller.get(f"/databases/{uuid}"))["labels"] == {}


async def test_the_longest_labels_and_the_most(lone: LoneApi) -> None:
    caller = await lone.caller()
    labels = {f"{number:02}{'k' * 61}": "😀" * 255 for number in range(MOST_LABELS)}
    made = data_of(await caller.create(labels=labels), 202)
    assert made["labels"] == labels
    key, value = next(iter(labels.items()))
    assert await found(caller, f"{key}:{value}") == [made["uuid"]]
    more = await caller.patch(f"/databases/{made['uuid']}", {"labels": {"one-more": "x"}})
    assert field_of(more) == "labels"
    exchanged = await caller.patch(f"/databases/{made['uuid']}", {"labels": {"one-more": "x", key: None}})
    assert len(data_of(exchanged)["labels"]) == MOST_LABELS


async def test_labels_stay_through_a_deletion(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller, labels=LABELS)
    data_of(await caller.delete(f"/databases/{uuid}"))
    (deleted,) = body_of(await caller.get("/deleted_databases", params={"label": "env:production"}))["data"]
    assert deleted["labels"] == LABELS
    # Lists don't show it, and neither does their index.
    assert (await found(caller, "env:production"), await indexed(uuid)) == ([], [])
    assert (await undeleted(caller, uuid))["data"]["labels"] == LABELS
    assert data_of(await caller.get(f"/databases/{uuid}"))["labels"] == LABELS
    assert await found(caller, "env:production") == [uuid]
    assert "database.undeleted" in await events_of(uuid)
