"""`POST /query_executions` on real databases: results, refusals, failures and their records."""

import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.engines.querying import TableInfo
from app.queries.translate import prompt
from app.queries.translate.schema_text import schema_lines
from app.store.session import fetch
from tests.queries.conftest import Asked, unless_refused
from tests.support.answers import body_of, error_of, field_of
from tests.support.in_process import lone_api
from tests.support.model_server import MODEL, says, script, sql
from tests.support.service import RunningService
from tests.support.store import store


async def record(service: RunningService, query_id: int) -> Any:
    async with store(service.control_dsn):
        [row] = await fetch("SELECT * FROM query_executions WHERE id = $1", query_id)
    return row


async def test_a_read(service: RunningService, asked: Asked) -> None:
    text = "SELECT name, total FROM customers c JOIN orders o ON o.customer_id = c.id ORDER BY total DESC"
    body = body_of(await asked.ask(sql(text)))
    assert body["success"] is True
    assert body["sql"] == text
    result = body["result"]
    assert result["type"] == "select"
    assert result["rows"] == [
        {"name": "Yara", "total": "200.10"},
        {"name": "Zed", "total": "50.00"},
        {"name": "Yara", "total": "20.00"},
    ]
    assert (result["rowCount"], result["truncated"], result["maxRows"]) == (3, False, 1000)
    assert [column["name"] for column in result["columns"]] == ["name", "total"]
    assert result.keys() == {"type", "columns", "rows", "rowCount", "truncated", "maxRows"}
    row = await record(service, body["query_id"])
    assert (row["sql"], row["sql_class"], row["verdict"], row["outcome"]) == (text, "select", "allowed", "succeeded")
    assert (row["model"], row["prompt_tokens"], row["completion_tokens"], row["turns"]) == (MODEL, 100, 20, 1)
    assert row["question"] == script(sql(text))
    assert (row["declared_kind"], row["counts"], row["row_count"]) == ("read", True, 3)
    assert row["team_id"] == asked.caller.team_id
    assert row["duration_ms"] >= row["model_ms"] >= 0
    assert "Yara" not in str({**row, "question": "", "sql": ""}), "no rows are kept"


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES",
        "SHOW FULL COLUMNS FROM orders",
        "SHOW INDEX FROM orders",
        "SHOW CREATE TABLE orders",
        "DESC orders",
    ],
)
async def test_questions_about_the_schema(on_mysql: Asked, text: str) -> None:
    for turn in (sql(text), says(f"```sql\n{text};\n```"), says(text)):
        body = body_of(await on_mysql.ask(turn))
        assert body["result"]["type"] == "select"
        assert body["result"]["rows"]
        shown = await on_mysql.run(text)
        values = [value for row in body["result"]["rows"] for value in row.values()]
        assert len(body["result"]["rows"]) == len(shown)
        assert values[0] == shown[0][0]


async def test_how_a_read_would_be_carried_out(asked: Asked) -> None:
    text = "EXPLAIN SELECT name FROM customers WHERE id = 1"
    assert "customers" in str(body_of(await asked.ask(sql(text)))["result"]["rows"])


async def test_a_write(asked: Asked) -> None:
    body = body_of(await asked.ask(sql("INSERT INTO customers (id, name) VALUES (10, 'A'), (11, 'B')", "write")))
    assert body["result"] == {"type": "write", "affectedRows": 2}
    body = body_of(await asked.ask(sql("DELETE FROM customers WHERE id >= 10", "write")))
    assert body["result"] == {"type": "write", "affectedRows": 2}
    assert await asked.run("SELECT count(*) FROM customers") == [(2,)]


async def test_changes_of_the_schema(asked: Asked) -> None:
    text = "CREATE TABLE coupons (id INT PRIMARY KEY, code VARCHAR(20)); CREATE INDEX by_code ON coupons (code);"
    body = body_of(await asked.ask(sql(text, "ddl")))
    assert body["result"] == {"type": "ddl_batch", "statementsExecuted": 2}
    assert body["sql"] == text
    body_of(await asked.ask(sql("INSERT INTO coupons VALUES (1, 'x')", "write")))
    assert body_of(await asked.ask(sql("SELECT * FROM coupons")))["result"]["rowCount"] == 1
    await asked.run("DROP TABLE coupons")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DROP TABLE orders", "ddl"),
        ("DELETE FROM orders", "write"),
        ("DELETE FROM orders WHERE 1 = 1", "write"),
        ("SELECT 1; DROP TABLE orders", "read"),
        ("DELETE FROM orders WHERE id = 1", "read"),
        ("DELETE FROM orders WHERE id = 1", None),
        ("SELECT 1", "write"),
        ("CREATE TABLE mine (n INT)", "write"),
        ("SELECT * FROM orders FOR UPDATE", "read"),
        ("SELEKT everything", "read"),
    ],
)
async def test_refusals(service: RunningService, asked: Asked, text: str, kind: str | None) -> None:
    error = error_of(await asked.ask(sql(text, kind)), 422, "unsafe_sql")
    assert error["details"].keys() == {"reason", "sql", "query_id"}
    assert error["details"]["sql"] == text
    assert error["details"]["reason"]
    row = await record(service, error["details"]["query_id"])
    assert (row["verdict"], row["outcome"], row["counts"]) == ("refused", "refused", True)
    assert row["reason"] == error["details"]["reason"]
    assert await asked.run("SELECT count(*) FROM orders") == [(3,)]


@pytest.mark.parametrize(
    ("policy", "allowed"), [("read", {"read"}), ("write", {"read", "write"}), ("ddl", {"read", "write", "ddl"})]
)
async def test_a_teams_policy(service: RunningService, asked: Asked, policy: str, allowed: set[str]) -> None:
    statements = {
        "read": "SELECT 1",
        "write": "UPDATE orders SET status = status WHERE id = 1",
        "ddl": "CREATE VIEW seen AS SELECT 1 AS n",
    }
    async with store(service.control_dsn):
        await fetch("UPDATE teams SET queries = $2 WHERE id = $1", asked.caller.team_id, policy)
    try:
        for kind, text in statements.items():
            answer = await asked.ask(sql(text, kind))
            if kind in allowed:
                body_of(answer)
            else:
                assert "team" in error_of(answer, 422, "unsafe_sql")["details"]["reason"]
    finally:
        async with store(service.control_dsn):
            await fetch("UPDATE teams SET queries = 'ddl' WHERE id = $1", asked.caller.team_id)
        await asked.run(*["DROP VIEW seen"] * ("ddl" in allowed))


async def test_what_the_engine_refuses(service: RunningService, asked: Asked) -> None:
    text = "INSERT INTO orders VALUES (1, 1, 5, 'twice')"
    error = error_of(await asked.ask(sql(text, "write")), 500, "query_execution_failed")
    assert "uplicate" in error["message"], "the engine's own words"
    details = error["details"]
    assert (details["sql"], details["statements_executed"], details["outcome_known"]) == (text, 0, True)
    assert details["engine_code"] in ("23505", "1062")
    row = await record(service, details["query_id"])
    assert (row["outcome"], row["verdict"]) == ("failed", "allowed")
    assert row["error_code"] == details["engine_code"]
    assert "uplicate" not in str(row), "messages can quote data"


async def test_a_question_that_is_mended(service: RunningService, asked: Asked) -> None:
    service.model.seen.clear()
    wrong, right = "SELECT nmae FROM customers", "SELECT name FROM customers WHERE id = 1"
    body = body_of(await asked.ask(sql(wrong), sql(right)))
    assert (body["sql"], body["result"]["rows"]) == (right, [{"name": "Zed"}])
    said = service.model.seen[-1]["messages"]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert "a column that doesn't exist" in said[3]["content"]
    row = await record(service, body["query_id"])
    assert (row["turns"], row["prompt_tokens"], row["sql"], row["outcome"]) == (2, 200, right, "succeeded")


async def test_mending_happens_once(service: RunningService, asked: Asked) -> None:
    service.model.seen.clear()
    error = error_of(await asked.ask(sql("SELECT nmae FROM customers")), 500, "query_execution_failed")
    assert "nmae" in error["message"]
    assert len(service.model.seen) == 2


async def test_mending_may_not_turn_a_read_into_a_write(asked: Asked) -> None:
    answer = await asked.ask(sql("SELECT nmae FROM customers"), sql("DELETE FROM customers WHERE id = 1", "write"))
    error_of(answer, 422, "unsafe_sql")
    assert await asked.run("SELECT count(*) FROM customers") == [(2,)]


async def test_sql_that_can_not_be_parsed_is_mended(asked: Asked) -> None:
    assert body_of(await asked.ask(sql("SELEKT 1"), sql("SELECT 1 AS n")))["result"]["rows"] == [{"n": 1}]


async def test_a_model_that_gives_up_mending(asked: Asked) -> None:
    for second in (says("I don't know."), {"status": 500}):
        error_of(await asked.ask(sql("SELECT nmae FROM customers"), second), 500, "query_execution_failed")
        error_of(await asked.ask(sql("SELEKT 1"), second), 422, "unsafe_sql")


async def test_errors_about_data_are_not_mended(service: RunningService, asked: Asked) -> None:
    service.model.seen.clear()
    await asked.ask(sql("INSERT INTO orders VALUES (1, 1, 5, 'twice')", "write"), sql("SELECT 1"))
    assert len(service.model.seen) == 1


async def test_no_message_of_the_engine_reaches_the_model(service: RunningService, asked: Asked) -> None:
    """Not even one that a tenant's own code raises in the guise of a wrong name."""
    if asked.is_postgres:
        await asked.run(
            "CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'column \"Yara-secret\" is wrong' USING ERRCODE = '42703'; END $$",
            "CREATE VIEW telling AS SELECT tell() AS n",
        )
    else:
        await asked.run(
            "CREATE TABLE telling (n INT)",
            "CREATE TRIGGER tell BEFORE INSERT ON telling FOR EACH ROW SIGNAL SQLSTATE '42S22'"
            " SET MYSQL_ERRNO = 1054, MESSAGE_TEXT = 'column \\'Yara-secret\\' is wrong'",
        )
    service.model.seen.clear()
    telling = sql("SELECT n FROM telling") if asked.is_postgres else sql("INSERT INTO telling VALUES (1)", "write")
    error = error_of(await asked.ask(telling), 500, "query_execution_failed")
    assert "Yara-secret" in error["message"], "whoever asked may see it"
    assert len(service.model.seen[-1]["messages"]) == 4, "it was told that something was wrong"
    assert "Yara-secret" not in str(service.model.seen)
    await asked.run(*(["DROP VIEW telling", "DROP FUNCTION tell"] if asked.is_postgres else ["DROP TABLE telling"]))


@pytest.mark.parametrize(
    "turn",
    [
        says("I'm sorry, I can't help with that."),
        says(""),
        says(None),
        says("{"),
        says('{"kind": "none", "sql": "DROP TABLE orders", "refusal": "There is no such table."}'),
        says('{"kind": "read", "sql": "  ", "refusal": null}'),
        {"refusal": "No.", "content": None},
    ],
)
async def test_no_sql(service: RunningService, on_postgres: Asked, turn: Any) -> None:
    error = error_of(await on_postgres.ask(turn), 422, "query_not_translated")
    assert error["details"]["reason"]
    row = await record(service, error["details"]["query_id"])
    assert (row["outcome"], row["counts"], row["sql"]) == ("not_translated", False, None)


async def test_whose_refusal_it_is(on_postgres: Asked) -> None:
    answer = await on_postgres.ask(says('{"kind": "none", "sql": null, "refusal": "There are no invoices."}'))
    assert error_of(answer, 422, "query_not_translated")["details"]["reason"] == "There are no invoices."


@pytest.mark.parametrize(
    "text",
    [
        'Sure! {"kind": "read", "sql": "SELECT 1 AS n", "refusal": null} Anything else?',
        '```json\n{"kind": "read", "sql": "SELECT 1 AS n"}\n```',
        "Here you are:\n```sql\nSELECT 1 AS n\n```\nGood luck!",
        "SELECT 1 AS n",
    ],
)
async def test_answers_in_other_forms(on_postgres: Asked, text: str) -> None:
    assert body_of(await on_postgres.ask(says(text)))["result"]["rows"] == [{"n": 1}]


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ({"status": 401}, "OPENAI_API_KEY"),
        ({"status": 404}, "HEADWATER_NL_MODEL"),
        ({"status": 400}, "400"),
        ({"status": 500}, "500"),
        ({"close": True}, "OPENAI_BASE_URL"),
        ({"answer": {"choices": []}}, "something else"),
        ({"answer": "no completion at all"}, "something else"),
    ],
)
async def test_a_model_that_is_away(service: RunningService, on_postgres: Asked, turn: Any, said: str) -> None:
    answer = await on_postgres.ask(turn)
    error = error_of(answer, 503, "language_model_unavailable")
    assert said in error["message"]
    assert int(answer.headers["Retry-After"]) > 0
    async with store(service.control_dsn):
        [row] = await fetch("SELECT * FROM query_executions ORDER BY id DESC LIMIT 1")
    assert (row["outcome"], row["counts"]) == ("model_unavailable", False)


async def test_a_model_that_is_slow(service: RunningService, on_postgres: Asked) -> None:
    async with service.another_api(NL_TIMEOUT_SECONDS="0.5") as (http, _):
        answer = await ask_at(http, on_postgres, {"delay": 30})
        assert "HEADWATER_NL_TIMEOUT_SECONDS" in error_of(answer, 503, "language_model_unavailable")["message"]


async def test_no_model_is_configured(service: RunningService, on_postgres: Asked) -> None:
    async with service.another_api(NL_MODEL="") as (http, _):
        error = error_of(await ask_at(http, on_postgres, sql("SELECT 1")), 503, "language_model_unavailable")
        assert "HEADWATER_NL_MODEL" in error["message"]


async def ask_at(http: httpx.AsyncClient, asked: Asked, turn: Any) -> httpx.Response:
    return await unless_refused(
        lambda: http.post(
            "/api/v1/query_executions",
            json={"database_uuid": asked.database["uuid"], "query": script(turn)},
            headers={"Authorization": f"Bearer {asked.caller.api_key}"},
        )
    )


@pytest_asyncio.fixture(scope="module")
async def of_one_row(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """An API whose answers have one row at most."""
    async with service.another_api(NL_MAX_ROWS="1") as (http, _):
        yield http


@pytest_asyncio.fixture(scope="module")
async def hurried(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """An API that gives statements half a second."""
    async with service.another_api(QUERY_TIMEOUT_SECONDS="0.5") as (http, _):
        yield http


async def test_rows_are_cut_at_the_setting(of_one_row: httpx.AsyncClient, on_postgres: Asked) -> None:
    answer = await ask_at(of_one_row, on_postgres, sql("SELECT n FROM generate_series(1, 1000000) n"))
    result = body_of(answer)["result"]
    assert (result["rowCount"], result["truncated"], result["maxRows"]) == (1, True, 1)


async def test_rows_about_the_schema_are_cut_too(of_one_row: httpx.AsyncClient, on_mysql: Asked) -> None:
    result = body_of(await ask_at(of_one_row, on_mysql, sql("DESC orders")))["result"]
    assert (result["rowCount"], result["truncated"]) == (1, True)


async def test_statements_are_timed_out(hurried: httpx.AsyncClient, asked: Asked) -> None:
    slow = " CROSS JOIN ".join(f"information_schema.columns c{n}" for n in range(4))
    turn = sql(f"SELECT count(*) FROM {slow}")
    # The statements that read the schema have no more time than the model's.
    answer = await unless_refused(lambda: ask_at(hurried, asked, turn), "The database's schema can't be read")
    error = error_of(answer, 500, "query_execution_failed")
    assert error["details"]["engine_code"] in ("57014", "1969", "3024"), error


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "x"}, "database_uuid"),
        ({"database_uuid": "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"}, "query"),
    ],
)
async def test_missing_fields(on_postgres: Asked, body: dict[str, Any], field: str) -> None:
    answer = await on_postgres.caller.request("POST", "/query_executions", json=body)
    assert field_of(answer, "missing_required_field") == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": " \n"}, "query"),
        ({"query": "x" * 2001}, "query"),
        ({"query": 5}, "query"),
        ({"database_uuid": "mine"}, "database_uuid"),
        ({"sql": "SELECT 1"}, "sql"),
    ],
)
async def test_fields_that_can_not_be(on_postgres: Asked, change: dict[str, Any], field: str) -> None:
    body = {"database_uuid": on_postgres.database["uuid"], "query": "x", **change}
    assert field_of(await on_postgres.caller.request("POST", "/query_executions", json=body)) == field


async def test_a_question_of_2000_characters(on_postgres: Asked) -> None:
    body_of(await on_postgres.ask(question="ü" * 2000))


async def test_whose_database_it_is(service: RunningService, on_postgres: Asked) -> None:
    stranger = Asked(await service.caller(), on_postgres.database)
    error_of(await stranger.ask(sql("SELECT 1")), 404, "not_found")
    without = Asked(await service.caller(scopes=("databases:*",)), on_postgres.database)
    assert error_of(await without.ask(sql("SELECT 1")), 403, "insufficient_scope")["details"] == {
        "required": "queries:write"
    }


async def test_a_database_that_is_not_active(service: RunningService) -> None:
    caller = await service.caller()
    asked = Asked(caller, await caller.created())
    async with store(service.control_dsn):
        await fetch("UPDATE databases SET status = 'paused' WHERE uuid = $1", asked.database["uuid"])
    error_of(await asked.ask(sql("SELECT 1")), 422, "database_not_active")
    async with store(service.control_dsn):
        await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", asked.database["uuid"])
    body_of(await asked.ask(sql("SELECT 1")))
    await caller.delete(f"/databases/{asked.database['uuid']}")
    error_of(await asked.ask(sql("SELECT 1")), 404, "not_found")


async def test_a_schema_that_has_changed_since_the_last_question(service: RunningService, asked: Asked) -> None:
    body_of(await asked.ask(sql("SELECT 1")))
    await asked.run("CREATE TABLE brand_new (n INT)")
    body_of(await asked.ask({**sql("SELECT n FROM brand_new"), "delay": 0.3}))
    assert "brand_new" in service.model.seen[-1]["messages"][1]["content"]
    await asked.run("DROP TABLE brand_new")


async def test_the_prompts_schema_is_made_in_a_thread(
    service: RunningService, on_postgres: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one takes half a second, in which nobody else would get an answer."""
    threads: list[int] = []

    def noted(tables: Sequence[TableInfo], question: str, quote: str) -> list[str]:
        threads.append(threading.get_ident())
        return schema_lines(tables, question, quote)

    monkeypatch.setattr(prompt, "schema_lines", noted)
    for name, value in service.model.environ.items():
        monkeypatch.setenv(name, value)
    async with lone_api(service.control_dsn, secret_keys=service.secret_keys, nl_model=MODEL) as api:
        # It is unknown, known, and known no more.
        for statements in ([], [], ["CREATE TABLE another_one (n INT)"]):
            await on_postgres.run(*statements)
            body_of(await ask_at(api.http, on_postgres, sql("SELECT 1")))
    await on_postgres.run("DROP TABLE another_one")
    assert len(threads) >= 3
    assert threading.get_ident() not in threads


def form_of(request: dict[str, Any]) -> str:
    form: str = request.get("response_format", {}).get("type", "none")
    return form


async def test_servers_that_know_no_json_schema(service: RunningService, on_postgres: Asked) -> None:
    kept, service.model.forms = service.model.forms, set()
    try:
        for form, questions in (("json_object", 3), ("none", 6)):
            service.model.forms = {form}
            async with service.another_api() as (http, _):
                for _ in range(questions):
                    body_of(await ask_at(http, on_postgres, sql("SELECT 1")))
                service.model.seen.clear()
                body_of(await ask_at(http, on_postgres, sql("SELECT 1")))
                assert {form_of(said) for said in service.model.seen} == {form}, "it has learned that"
    finally:
        service.model.forms = kept


async def test_a_request_that_is_refused_changes_the_form_of_no_other(
    service: RunningService, on_postgres: Asked
) -> None:
    async with service.another_api() as (http, _):
        kept, service.model.forms = service.model.forms, {"json_object"}
        try:
            body_of(await ask_at(http, on_postgres, sql("SELECT 1")))
        finally:
            service.model.forms = kept
        service.model.seen.clear()
        body_of(await ask_at(http, on_postgres, sql("SELECT 1")))
        assert {form_of(said) for said in service.model.seen} == {"json_schema"}
