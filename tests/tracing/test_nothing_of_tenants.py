"""No secret and no word of a tenant's gets into a span, whatever they send."""

import asyncio
import json
import random
import re
import string
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.contracts.base import Engine
from app.core.ids import engine_name
from app.core.tracing.encoding import encoded_request
from app.core.tracing.sampling import sampler_of
from app.core.tracing.spans import NO_SPAN, SpanKind, Tracer, span
from app.engines.errors import EngineError, HostUnavailable
from app.engines.hosts import AdminAddress
from app.engines.steps import operation_of, statement_span, traced
from app.engines.tenants import Tenant
from app.http.routes import api_handlers
from app.store.session import fetch
from tests.applications.support import applied
from tests.support.client import Caller
from tests.support.collector import PATH, Collector
from tests.support.in_process import LoneApi
from tests.support.service import RunningService
from tests.support.together import together
from tests.support.waiting import until
from tests.support.webhooks import subscribed
from tests.tracing.kept import Kept

MARK = "hushhush"
"""Is in everything that the fuzzing makes up, in small letters or capitals; so long that no random id has it."""
_AT_ONCE = 8
_STEPS = 40
"""Of adapters, for each round of requests: a step has three spans, which cost a hundredth of a request."""
_SECRET = re.compile(r"password|secret|token|api_key|connection_string")
_KEPT_SECRETS = 200
_SHORTEST_SECRET = 12
"""Characters. Whatever is shorter may be an id."""


class Fuzz:
    """Requests to every route, with made-up words wherever a client may put one."""

    def __init__(self, chance: random.Random, caller: Caller) -> None:
        self._chance = chance
        self._caller = caller
        self._routes = sorted(
            (path, str(method)) for path, handler in api_handlers() for method in handler.http_methods
        )
        self._known: list[str] = [str(caller.team_id), str(caller.key_id)]
        self.secrets = deque([caller.api_key], _KEPT_SECRETS)
        """Of the latest answers."""

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
            del self._known[:-20]
            values = (str(data[name]) for name in data if _SECRET.search(name))
            self.secrets.extend(value for value in values if len(value) >= _SHORTEST_SECRET)

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

    async def take_steps(self, adapter: "Adapter") -> None:
        """What is done on a host for tenants, in words that no client could send in a header or a path."""
        for _ in range(_STEPS):
            word = self._chance.choice(_SHAPES).format(self._word())
            tenant = Tenant(name=engine_name(), password=word, marker=word)
            with suppress(EngineError):
                await adapter.create(tenant, self._chance.choice(_STATEMENTS).format(word))


_SHAPES = ("{}", "'{}", '"; DROP DATABASE {} --', "\x00{}\n", "é{}\U0001f600", "\ud800{}", "{}" + 400 * "x", "${{{}}}")
_STATEMENTS = (
    "{}",
    "CREATE {} TABLE",
    "CREATE ROLE x PASSWORD '{}'",
    "ALTER USER x IDENTIFIED BY '{}'",
    "/* {} */ SELECT 1",
    "SELECT/**/{}",
    "SET\u00a0{}",
    "{0} TABLE {0}",
)


class Adapter:
    """One whose statements all fail with the server's words, which quote them."""

    engine = Engine.POSTGRES
    telemetry_name = "postgresql"
    address = AdminAddress(host="db.example.com", port=5432, user="postgres", password=f"{MARK}-of-ours")

    @traced
    async def create(self, tenant: Tenant, statement: str) -> None:
        with suppress(EngineError), statement_span(statement):
            raise EngineError(f"syntax error at {statement}", code=tenant.password)
        with statement_span(f"DROP ROLE {tenant.password}"):
            raise HostUnavailable(statement)


async def _fuzzed(api: LoneApi, kept: Kept, spans: int) -> int:
    """Returns how many spans were looked at."""
    caller = await api.caller()
    await fetch("UPDATE teams SET name = $1 WHERE id = $2", f"{MARK} and sons", caller.team_id)
    await fetch("UPDATE users SET name = $1, email = $1 WHERE id = $2", f"{MARK}@example.com", caller.user_id)
    await fetch("UPDATE api_keys SET name = $1 WHERE id = $2", f"{MARK} key", caller.key_id)
    fuzz, adapter, tracer = Fuzz(random.Random(17), caller), Adapter(), Tracer(kept, sampler_of("always_on", 1))
    seen = 0
    while seen < spans:
        await asyncio.gather(*(fuzz.send() for _ in range(_AT_ONCE)))
        with tracer.begin("activity", SpanKind.CONSUMER):
            await fuzz.take_steps(adapter)
        exported = encoded_request(b"", b"", kept.spans)
        assert MARK.encode() not in exported.lower(), kept.seen()
        assert not any(secret.encode() in exported for secret in fuzz.secrets)
        seen += len(kept.spans)
        kept.spans.clear()
    return seen


async def test_no_made_up_word_is_in_a_span_of_the_api(traced_api: LoneApi, kept: Kept) -> None:
    assert await _fuzzed(traced_api, kept, 2000) >= 2000


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
def test_a_statement_is_described_by_known_words_alone(statement: str) -> None:
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
