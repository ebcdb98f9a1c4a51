"""A model, or its server, that answers with whatever it likes: a question ends as 422, 503 or the engine's own failure,
or is answered, and the process takes in no more than it can hold."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.queries.translate.transport import MAX_OCTETS
from app.store.session import fetch
from tests.queries.conftest import Asked
from tests.support.model_server import ModelServer, model_server, says, sql
from tests.support.service import RunningService
from tests.support.store import store

ALLOWED = {
    200: {"select", "write", "ddl_batch"},
    422: {"unsafe_sql", "query_not_translated"},
    500: {"query_execution_failed"},
    503: {"language_model_unavailable"},
}


@contextmanager
def answering(server: ModelServer, turn: dict[str, Any]) -> Iterator[None]:
    server.forced = turn
    try:
        yield
    finally:
        server.forced = None


async def ends_well(service: RunningService, asked: Asked, turn: dict[str, Any]) -> httpx.Response:
    with answering(service.model, turn):
        answer = await asked.ask(question="How many orders are there?")
    body = answer.json()
    code = body["result"]["type"] if answer.status_code == 200 else body["error"]["code"]
    assert code in ALLOWED.get(answer.status_code, set()), (answer.status_code, str(body)[:500])
    async with store(service.control_dsn):
        [row] = await fetch(
            "SELECT outcome, error_code FROM query_executions WHERE team_id = $1 ORDER BY id DESC LIMIT 1",
            asked.caller.team_id,
        )
    assert row["outcome"]
    assert row["error_code"] != "internal_error"
    return answer


def quoted(text: str) -> str:
    return "SELECT '" + text.replace("\\", "").replace("'", "''") + "' AS said"


# Every plane, control characters and lone surrogates.
anything = st.text(st.characters(), max_size=60)
planes = st.text(
    st.sampled_from([chr(plane * 0x10000 + at) for plane in range(17) for at in (0x41, 0x300, 0xFFFD, 0xFFFF)])
)
controls = st.text(st.characters(max_codepoint=0x9F), max_size=30)
WORDS = r"""
SELECT * FROM orders WHERE id total = ( ) , ; ' " ` -- /* */ $$ $1 ? \ é 🦆 NULL 1e999 -0 .. :: @@ := UNION ALL EXPLAIN
SHOW TABLES DESCRIBE COLUMNS LIKE 'x' CASE END CAST AS INT JSON ARRAY[ ] { } U&'\d800' E'\0' X'' 0x b'2' _utf8 INTERVAL
BETWEEN IN LATERAL OVER ROW WITH RECURSIVE VALUES
"""
pieces = st.lists(st.sampled_from([*WORDS.split(), "\x00", "\r", "\n"]), max_size=25).map(" ".join)
numbers = st.integers(min_value=-(10**400), max_value=10**400).map(str) | st.floats().map(repr)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)
statements = (
    anything | planes.map(quoted) | controls.map(quoted) | pieces | numbers.map("SELECT {} AS n".format)
    | anything.map('SELECT 1 AS "{}"'.format) | anything.map("SELECT 1 AS `{}`".format)
)  # fmt: skip
replies = (
    st.fixed_dictionaries({"kind": st.sampled_from(["read", "write", "ddl", "none"]), "sql": statements}).map(
        json.dumps
    )
    | st.fixed_dictionaries({"kind": values, "sql": values, "refusal": values}).map(json.dumps)
    | statements
    | statements.map("```sql\n{}\n```".format)
)
fuzzed = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzzed
@example(content="SELECT '\x00'")
@example(content=json.dumps({"kind": "read", "sql": "SELECT '\x00'"}))
@example(content=json.dumps({"kind": "read", "sql": "SELECT 1 -- \ud800"}))
@example(content="SELECT '\ud800'")
@example(content=json.dumps({"kind": "none", "sql": None, "refusal": "\x00\ud800 no"}))
@example(content=json.dumps({"kind": "read", "sql": "SELECT " + "9" * 5000}))
@example(content=json.dumps({"kind": "read", "sql": "SELECT 1 LIMIT " + "9" * 5000}))
@example(content=json.dumps({"kind": "read", "sql": "SELECT 1e9999"}))
@given(content=replies)
async def test_whatever_the_model_says(service: RunningService, asked: Asked, content: str) -> None:
    await ends_well(service, asked, says(content))


@fuzzed
@given(answer=values | st.fixed_dictionaries({"choices": values, "usage": values}))
async def test_whatever_the_server_says_for_a_completion(
    service: RunningService, on_postgres: Asked, answer: Any
) -> None:
    await ends_well(service, on_postgres, {"answer": answer})


DEEP = 100_000


@pytest.mark.parametrize(
    "content",
    [
        "SELECT " + "(" * 8000 + "1" + ")" * 8000,
        "SELECT " + "(" * DEEP + "1" + ")" * DEEP,
        "SELECT * FROM " + "(SELECT * FROM " * 500 + "orders" + ") AS t" * 500,
        "SELECT " + "CASE WHEN 1 = 1 THEN " * 400 + "1" + " END" * 400,
        "SELECT " + "ARRAY[" * 2000 + "1" + "]" * 2000,
        "SELECT 1" + " OR 1" * 4000,
        json.dumps({"kind": "read", "sql": "SELECT " + "NOT " * 3000 + "true"}),
        '{"kind": "read", "sql": ' + "[" * DEEP + "]" * DEEP + "}",
        "[" * DEEP,
        '{"a":' * 40_000,
        "``` " * 60_000,
        "```\n" * 60_000,
        "{}" * 100_000,
        "SELECT '" + "x" * 300_000 + "'",
        "x" * (MAX_OCTETS - 1000),
    ],
    ids=lambda content: f"{content[:12]}-{len(content)}",
)
async def test_answers_that_are_deep_or_long(service: RunningService, asked: Asked, content: str) -> None:
    await ends_well(service, asked, says(content))


def response(body: bytes, *headers: str, status: str = "200 OK") -> dict[str, Any]:
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, f"Content-Length: {len(body)}"]
    return {"raw": "\r\n".join([*head, "", ""]).encode() + body}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"choices": [{"message": {"content": "SELECT '" + "x" * 10_000_000 + "'"}}]}).encode(),
        b"[" * 900_000,
        b'{"choices":' * 90_000,
        b'{"choices": [{"message": {"content": "\\ud800"}}]}',
        b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
        b'{"choices": [{"message": {"content": "SELECT 1"}}], "usage": {"prompt_tokens": 1' + b"0" * 400 + b"}}",
        b"",
        b"\x00",
    ],
    ids=["10 MB", "deep list", "deep object", "surrogate", "no UTF-8", "huge number", "nothing", "nul"],
)
async def test_bodies_that_are_no_completion(service: RunningService, on_postgres: Asked, body: bytes) -> None:
    answer = await ends_well(service, on_postgres, response(body))
    assert answer.status_code == 503


async def test_a_body_without_an_end_is_left(service: RunningService, on_postgres: Asked) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    service.model.sent = 0
    answer = await ends_well(service, on_postgres, {"flood": head + chunk})
    assert answer.status_code == 503
    assert service.model.sent < 64 * MAX_OCTETS, "no more than what lay in the buffers of two sockets"


async def test_errors_are_classified_by_their_status_alone(service: RunningService, on_postgres: Asked) -> None:
    refused = response(b"[" * 5_000_000, "Content-Encoding: gzip", status="401 Unauthorized")
    assert "OPENAI_API_KEY" in (await ends_well(service, on_postgres, refused)).json()["error"]["message"]


async def test_compressed_bodies_are_refused(service: RunningService, on_postgres: Asked) -> None:
    small = gzip.compress(json.dumps({"choices": [{"message": {"content": "SELECT 1"}}]}).encode())
    bomb = gzip.compress(b" " * 300_000_000)
    for body in (small, bomb):
        answer = await ends_well(service, on_postgres, response(body, "Content-Encoding: gzip"))
        assert "compressed" in answer.json()["error"]["message"]


@pytest.mark.parametrize("location", ["{}", "http://[", "//x y", ""])
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_redirects_are_not_followed(
    service: RunningService, on_postgres: Asked, status: str, location: str
) -> None:
    async with model_server() as elsewhere:
        target = location.format(f"{elsewhere.url}/chat/completions")
        answer = await ends_well(service, on_postgres, response(b"", f"Location: {target}", status=status))
        assert "OPENAI_BASE_URL" in answer.json()["error"]["message"]
        assert elsewhere.seen == []


async def test_cookies_are_not_kept(service: RunningService, on_postgres: Asked) -> None:
    good = json.dumps({"choices": [{"message": sql("SELECT 1")}]}).encode()
    await ends_well(service, on_postgres, response(good, "Set-Cookie: kept=1; Path=/"))
    service.model.seen.clear()
    await ends_well(service, on_postgres, sql("SELECT 1"))
    assert "cookie" not in service.model.seen[0]["head"].lower()
