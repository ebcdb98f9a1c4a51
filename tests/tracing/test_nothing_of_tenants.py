"""No secret and no word of a tenant's gets into a span, whatever they send."""

import asyncio
import json
import random
import string
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.tracing.spans import NO_SPAN, span
from app.engines.steps import operation_of
from app.http.routes import api_handlers
from tests.applications.support import applied
from tests.support.client import Caller
from tests.support.collector import PATH, Collector
from tests.support.in_process import LoneApi
from tests.support.service import RunningService
from tests.support.together import together
from tests.support.waiting import until
from tests.support.webhooks import subscribed
from tests.tracing.kept import Kept

MARK = "hush"
"""Begins everything that the fuzzing makes up."""
_AT_ONCE = 8


class Fuzz:
    """Requests to every route, with made-up words wherever a client may put one."""

    def __init__(self, chance: random.Random, caller: Caller) -> None:
        self._chance = chance
        self._caller = caller
        self._routes = sorted(
            (path, str(method)) for path, handler in api_handlers() for method in handler.http_methods
        )
        self._known: list[str] = [str(caller.team_id), str(caller.key_id)]

    async def send(self) -> None:
        path, method = self._chance.choice(self._routes)
        while "{" in path:
            before, _, rest = path.partition("{")
            path = before + self._segment() + rest.partition("}")[2]
        key = self._chance.choice([None, self._word(), str(uuid4())])
        answer = await self._caller.request(
            method,
            path.removeprefix("/api/v1"),
            key=key,
            params={self._chance.choice(["name", "label", "wait", self._word()]): self._word()},
            content=json.dumps(self._body()),
            headers={"User-Agent": self._word(), "X-Request-Id": self._word(), "tracestate": f"a={self._word()}"},
        )
        self._learn(answer.text)

    def _learn(self, text: str) -> None:
        data = json.loads(text).get("data") if text.startswith("{") else None
        if isinstance(data, dict):
            self._known += [str(data[name]) for name in ("uuid", "id") if name in data]

    def _segment(self) -> str:
        return self._chance.choice([self._word(), str(uuid4()), *self._known[-20:]])

    def _body(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "name": self._word(),
            "db_type": self._chance.choice(["postgres", "mysql", self._word()]),
            "sql": f"SELECT '{self._word()}'",
            "question": self._word(),
            "url": f"https://{self._word()}.example.com/{self._word()}",
            "labels": {self._word(): self._word()},
            "description": self._word(),
            "token": self._word(),
            "database_uuid": self._chance.choice(self._known),
            "source": {"database_uuid": self._chance.choice(self._known)},
            "email": f"{self._word()}@example.com",
            "events": [self._word()],
            "scopes": ["databases:read"],
        }
        chosen = self._chance.sample(sorted(fields), self._chance.randint(1, 5))
        return {name: fields[name] for name in (*chosen, "name")}

    def _word(self) -> str:
        return MARK + "".join(self._chance.choices(string.ascii_lowercase + string.digits, k=12))


async def _fuzzed(api: LoneApi, kept: Kept, spans: int) -> int:
    """Returns how many spans were looked at."""
    fuzz = Fuzz(random.Random(17), await api.caller())
    seen = 0
    while seen < spans:
        await asyncio.gather(*(fuzz.send() for _ in range(_AT_ONCE)))
        for one in kept.spans:
            assert MARK.encode() not in one, kept.seen()
        seen += len(kept.spans)
        kept.spans.clear()
    return seen


async def test_no_made_up_word_is_in_a_span_of_the_api(traced_api: LoneApi, kept: Kept) -> None:
    assert await _fuzzed(traced_api, kept, 600) >= 600


@pytest.mark.soak
async def test_no_made_up_word_is_in_a_million_spans_of_the_api(traced_api: LoneApi, kept: Kept) -> None:
    assert await _fuzzed(traced_api, kept, 1_000_000) >= 1_000_000


async def test_no_word_of_a_tenant_is_in_a_span_of_a_worker(
    traced_service: RunningService, collector: Collector
) -> None:
    """Names, labels, scripts, questions and receivers, on the engine host too."""
    caller = await traced_service.caller()
    await subscribed(caller, collector.receiver.url(f"/{MARK}-path"))
    database = await caller.created(f"{MARK}-name", db_type="postgres", labels={f"{MARK}-key": f"{MARK}-value"})
    await applied(caller, database, f"CREATE TABLE {MARK}_table (n int); SELECT '{MARK}'::int")
    await caller.post("/query_executions", {"database_uuid": database["uuid"], "question": f"how many {MARK}?"})
    await caller.delete(f"/databases/{database['uuid']}")
    await until(lambda: any(MARK in one.path for one in collector.receiver.received))
    await collector.find("activity revoke_access")
    for request in collector.receiver.of(PATH):
        assert MARK.encode() not in request.body
        assert database["db_password"].encode() not in request.body
        assert caller.api_key.encode() not in request.body


@given(st.text() | st.text().map(lambda text: f"SELECT {text}") | st.text().map(lambda text: f"{text} TABLE"))
def test_a_statement_is_told_by_known_words_alone(statement: str) -> None:
    assert all(word.isalpha() and word.isascii() for word in operation_of(statement).split())
    assert MARK not in operation_of(f"{MARK} {statement}")


@together(
    ("statement", "operation"),
    [
        ("CREATE DATABASE x", "CREATE DATABASE"),
        ("  drop role x", "DROP ROLE"),
        ("SELECT secret", "SELECT"),
        ("CREATE hush", "CREATE"),
        ("ALTER USER 'x' IDENTIFIED BY 'hush'", "ALTER USER"),
        ("hush", "statement"),
        ("", "statement"),
        (None, "statement"),
    ],
)
def test_what_a_statement_is_called(statement: str | None, operation: str) -> None:
    assert operation_of(statement) == operation


def test_nothing_of_opentelemetry_is_imported_and_nothing_made_where_nothing_is_traced() -> None:
    code = (
        "import sys, app.http.serving, workers.serving\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'opentelemetry']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert span("x") is NO_SPAN
