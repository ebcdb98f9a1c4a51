"""A model that answers at random: cut, mixed, mislabelled. No server error but the engine's own, and no read writes.

RANDOM_ANSWERS is the number for each engine (30), RANDOM_SEED chooses others.
"""

import json
import os
import random
from typing import Any

import pytest

from app.store.session import fetch
from tests.dialects.corpus import mysql, postgres
from tests.queries.conftest import Asked, database_of
from tests.support.model_server import says, sql
from tests.support.service import RunningService
from tests.support.store import store

TABLES = ("customers", "products", "orders", "items", "log")
KINDS = ("read", "read", "read", "write", "ddl", "none", None, "drop everything", 5)


def statements(corpus: Any) -> list[str]:
    refused = [text for text in corpus.REFUSED if "\x00" not in text]
    return [*corpus.READS, *corpus.WRITES, *corpus.CHANGES, *refused]


def turn(chosen: random.Random, texts: list[str]) -> dict[str, Any]:
    one, other = chosen.choice(texts), chosen.choice(texts)
    text = chosen.choice(
        [
            one,
            one,
            f"{one}; {other}",
            f"{one[: chosen.randrange(len(one) + 1)]}{other[chosen.randrange(len(other) + 1) :]}",
            one.replace(" ", chosen.choice(["\t", " /**/ ", "\n-- x\n", "\u00a0"])),
            "".join(chosen.choice("SELECT *FROM;'\"`()/#-\\ü🦆") for _ in range(40)),
        ]
    )[:400]
    answer = sql(text, chosen.choice(KINDS))  # type: ignore[arg-type]  # models don't keep to types
    form = chosen.random()
    if form < 0.15:
        return says(answer["content"][: chosen.randrange(len(answer["content"]))])
    if form < 0.3:
        return says(f"Here:\n```sql\n{text}\n```")
    return says(json.dumps({"sql": [text]})) if form < 0.35 else answer


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_random_answers(service: RunningService, engine: str) -> None:
    if engine == "mysql" and service.mysql is None:
        pytest.skip("no MySQL or MariaDB server on this machine")
    corpus: Any = postgres if engine == "postgres" else mysql
    count, seed = int(os.environ.get("RANDOM_ANSWERS", "30")), int(os.environ.get("RANDOM_SEED", "7"))
    chosen, asked = random.Random(seed), await database_of(service, engine, tables=corpus.FIXTURE)
    for _ in range(count):
        before = await contents(asked)
        turns = [turn(chosen, statements(corpus)) for _ in range(2)]
        answer = await asked.ask(*turns)
        body = answer.json()
        code = body["result"]["type"] if answer.status_code == 200 else body["error"]["code"]
        assert answer.status_code < 500 or code == "query_execution_failed", (turns, body)
        if code not in ("write", "ddl_batch"):
            assert await contents(asked) == before, (turns, body)
    async with store(service.control_dsn):
        rows = await fetch(
            "SELECT outcome FROM query_executions"
            " WHERE team_id = $1 AND error_code IS DISTINCT FROM 'database_unreachable'",  # those were asked again
            asked.caller.team_id,
        )
    assert len(rows) == count
    assert all(row["outcome"] for row in rows)


async def contents(asked: Asked) -> list[Any]:
    """Of the tables that nothing can drop, and how many there are."""
    rows = [await asked.run(f"SELECT * FROM {name} ORDER BY 1, 2") for name in TABLES]
    return [*rows, await asked.run("SELECT count(*) FROM information_schema.tables")]
