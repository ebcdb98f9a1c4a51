"""Applying blueprints through the whole service, on every engine."""

import re

import pytest

from app.engines.errors import MAX_MESSAGE
from tests.applications.support import ENGINES, TWO_TABLES, applied, ask, catalogs, ended, saved, seen, tables
from tests.e2e.hosts import mysql, postgres
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.service import RunningService

each_engine = pytest.mark.parametrize("engine", ENGINES)
BROKEN = f"{TWO_TABLES}\nINSERT INTO nowhere VALUES (1);\nCREATE TABLE c (id integer);\n"
TITLED = "CREATE TABLE {{name}} (title varchar(100) NOT NULL);\nINSERT INTO {{name}} VALUES ({{title}});\n"
TITLE = {"name": {"type": "identifier"}, "title": {"type": "string", "secret": True}}


@each_engine
async def test_all_statements_are_applied(caller: Caller, engine: str) -> None:
    database = await caller.created(db_type=engine)
    application = await applied(caller, database, f"{TWO_TABLES}INSERT INTO b VALUES (1), (2);")
    assert application["status"] == "completed", application
    assert application["statements_total"] == application["statements_succeeded"] == 3
    assert application["statements_failed"] == 0
    assert application["error_message"] is None
    log = application["execution_log"]
    assert [entry["status"] for entry in log] == ["succeeded"] * 3
    assert [entry["index"] for entry in log] == [1, 2, 3]
    assert [entry["rows"] for entry in log] == [None, None, 2]
    assert await tables(database) == ["a", "b"]


@each_engine
async def test_a_dry_run_leaves_nothing(service: RunningService, caller: Caller, engine: str) -> None:
    database = await caller.created(db_type=engine)
    await applied(caller, database, "CREATE TABLE kept (id integer PRIMARY KEY)")
    before = await catalogs(service, database)
    script = f"{TWO_TABLES}INSERT INTO b VALUES (1);\nALTER TABLE kept ADD note varchar(10);\nDROP TABLE a;"
    application = await applied(caller, database, script, dry_run=True)
    assert application["status"] == "rolled_back", application
    assert application["is_dry_run"] is True
    assert application["statements_succeeded"] == 5
    expected = "rolled back" if engine == "postgres" else "throw-away copy"
    assert all(expected in entry["note"] for entry in application["execution_log"])
    assert await catalogs(service, database) == before


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_copy_lacks_is_said_once(caller: Caller, fails: bool) -> None:
    """A schema may have any number of views that can't be copied, and a script ten thousand statements."""
    database = await caller.created(db_type="mysql")
    views = [f"broken_{number:03}" for number in range(300)]
    script = "DO 1;\n" * 300 + ("INSERT INTO nowhere VALUES (1);" if fails else "")
    async with mysql(database["connection_string"]) as cursor:
        await cursor.execute("CREATE TABLE gone (id integer)")
        for view in views:
            await cursor.execute(f"CREATE VIEW {view} AS SELECT id FROM gone")
        await cursor.execute("DROP TABLE gone")
        application = await applied(caller, database, script, dry_run=True)
        # Whoever lists all tables of the server would be warned of each.
        await cursor.execute(f"DROP VIEW {', '.join(views)}")
    assert application["status"] == ("failed" if fails else "rolled_back")
    notes = [entry["note"] for entry in application["execution_log"]]
    assert max(map(len, notes)) <= MAX_MESSAGE
    said = [text for text in [*notes, application["error_message"] or ""] if "broken_000" in text]
    assert len(said) == 1
    assert said[0] == (application["error_message"] if fails else notes[0])
    assert "and 295 more" in said[0]
    assert set(re.findall(r"\bt[a-z2-7]{22}\b", said[0])) == {database["db_name"]}


THREE_ORDERS = "CREATE TABLE orders (id serial PRIMARY KEY, n integer); INSERT INTO orders (n) VALUES (1), (2), (3);"


async def test_a_dry_run_sets_no_sequence(caller: Caller) -> None:
    """PostgreSQL's setval stays when the transaction is rolled back: the next row would have a number that is taken."""
    database = await caller.created()
    await applied(caller, database, THREE_ORDERS)
    script = "DELETE FROM orders;\nSELECT setval('orders_id_seq', 1, false);\nINSERT INTO orders (n) VALUES (4);"
    application = await applied(caller, database, script, dry_run=True)
    assert application["status"] == "rolled_back", application
    assert [entry["status"] for entry in application["execution_log"]] == ["succeeded", "skipped", "succeeded"]
    assert "setval is not undone" in application["execution_log"][1]["note"]
    async with postgres(database["connection_string"]) as connection:
        await connection.execute("INSERT INTO orders (n) VALUES (4)")


async def test_a_failure_after_setval_says_that_it_stays(caller: Caller) -> None:
    database = await caller.created()
    await applied(caller, database, THREE_ORDERS)
    script = (
        "SELECT setval('orders_id_seq', 100);\nDELETE FROM orders;\nSELECT 1 / 0;\nSELECT setval('orders_id_seq', 9);"
    )
    application = await applied(caller, database, script)
    assert application["status"] == "failed"
    assert application["error_message"].endswith("nothing was changed but sequences that setval has set.")
    notes = [entry["note"] for entry in application["execution_log"][:2]]
    assert notes == ["rolled back, but setval is not undone by a rollback", "rolled back"]
    async with postgres(database["connection_string"]) as connection:
        assert await connection.fetchval("SELECT last_value FROM orders_id_seq") == 100
    # What was not reached has set nothing.
    application = await applied(caller, database, "SELECT 1 / 0; SELECT setval('orders_id_seq', 9);")
    assert application["error_message"].endswith("nothing was changed.")


@each_engine
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_failure_that_leaves_nothing(
    service: RunningService, caller: Caller, engine: str, dry_run: bool
) -> None:
    database = await caller.created(db_type=engine)
    before = await catalogs(service, database)
    application = await applied(caller, database, BROKEN, dry_run=dry_run)
    assert application["status"] == "failed"
    assert application["statements_failed"] == 1
    failed = application["execution_log"][2]
    assert failed["error"]["code"] in ("42P01", "1146")
    assert "nowhere" in failed["error"]["message"]
    assert application["execution_log"][3]["status"] == "skipped"
    assert "Statement 3 (line 4) failed" in application["error_message"]
    assert await catalogs(service, database) == before


@pytest.mark.parametrize(
    "wrong",
    [
        "DROP TABLE a b",
        "CREATE INDEX i a (id)",
        "CREATE TABLE c (id serial, note varchar)",
        "ALTER TABLE ONLY a ADD note text",
        "CREATE TRIGGER t BEFORE INSERT ON a EXECUTE FUNCTION f()",
        "SET search_path = a",
    ],
)
async def test_what_only_the_server_can_judge_is_found_by_its_line(
    service: RunningService, caller: Caller, wrong: str
) -> None:
    """MySQL's grammar is judged in full by the copy alone: before the database is touched."""
    database = await caller.created(db_type="mysql")
    before = await catalogs(service, database)
    application = await applied(caller, database, f"{TWO_TABLES}\n{wrong};\nCREATE TABLE c (id integer);\n")
    assert application["status"] == "failed"
    assert "Statement 3 (line 4) failed" in application["error_message"]
    assert application["execution_log"][2]["error"]["code"]
    assert application["execution_log"][3]["status"] == "skipped"
    assert await catalogs(service, database) == before


async def test_what_stays_of_a_script_that_fails_on_data(caller: Caller) -> None:
    """The rehearsal has no data, so this is found out in the database itself."""
    database = await caller.created(db_type="mysql")
    await applied(caller, database, "CREATE TABLE a (id integer PRIMARY KEY); INSERT INTO a VALUES (1);")
    script = "CREATE TABLE b (id integer);\nINSERT INTO a VALUES (1);\nCREATE TABLE c (id integer);\n"
    application = await applied(caller, database, script)
    assert application["status"] == "failed"
    assert [entry["status"] for entry in application["execution_log"]] == ["succeeded", "failed", "skipped"]
    assert "stays" in application["execution_log"][0]["note"]
    assert "Statement 1 stays" in application["error_message"]
    assert await tables(database) == ["a", "b"]


async def test_a_row_that_only_the_database_has(caller: Caller) -> None:
    """What fails on the copy for want of data is tried in the database all the same."""
    database = await caller.created(db_type="mysql")
    await applied(
        caller,
        database,
        "CREATE TABLE a (id integer PRIMARY KEY); INSERT INTO a VALUES (1);"
        "CREATE TABLE b (a_id integer NOT NULL, FOREIGN KEY (a_id) REFERENCES a (id));",
    )
    for script in (
        "INSERT INTO b VALUES (1)",
        "INSERT INTO b VALUES ((SELECT id FROM a))",
        "SET @found = (SELECT id FROM a); INSERT INTO b VALUES (@found)",
    ):
        tried = await applied(caller, database, script, dry_run=True)
        assert tried["status"] == "rolled_back", tried
        assert tried["execution_log"][-1]["status"] == "unknown"
        assert (await applied(caller, database, script))["status"] == "completed"


async def test_a_null_that_no_data_would_mend(caller: Caller) -> None:
    database = await caller.created(db_type="mysql")
    script = "CREATE TABLE a (id integer NOT NULL); INSERT INTO a VALUES (NULL)"
    application = await applied(caller, database, script)
    assert "Nothing was changed." in application["error_message"]
    assert await tables(database) == []


@each_engine
async def test_variables_and_secrets(caller: Caller, engine: str) -> None:
    database = await caller.created(db_type=engine)
    values = {"name": "pages", "title": 'It\'s \\ "hidden"'}
    application = await applied(caller, database, TITLED, definitions=TITLE, variables=values)
    assert application["status"] == "completed", application
    assert application["variable_values"]["name"] == "pages"
    assert "hidden" not in str(application)
    assert "hidden" not in str(await seen(caller, application))
    assert await tables(database) == ["pages"]


async def test_an_application_shows_the_sql_that_it_ran(caller: Caller) -> None:
    database = await caller.created()
    blueprint = await saved(caller, "CREATE TABLE a (id integer)")
    path = f"/databases/{database['uuid']}/blueprint_applications"
    application = data_of(await caller.post(path, {"blueprint_uuid": blueprint}))
    await caller.request("PATCH", f"/blueprints/{blueprint}", json={"sql_content": "CREATE TABLE b (id integer)"})
    await caller.request("DELETE", f"/blueprints/{blueprint}")
    shown = await seen(caller, application)
    assert shown["blueprint_version"] == 1
    assert shown["sql_content"] == "CREATE TABLE a (id integer)"


async def test_an_answer_before_the_end(service: RunningService, caller: Caller) -> None:
    database = await caller.created()
    async with service.frozen("worker"):
        for fields in ({"wait": False}, {"timeout": 1}):
            application = await ask(caller, database, "SELECT 1", **fields)
            assert application["status"] == "pending"
            assert application["execution_log"] is None
    assert (await ended(caller, application))["status"] == "completed"


async def test_a_replay_applies_nothing_again(caller: Caller) -> None:
    database = await caller.created()
    body = {"blueprint_uuid": await saved(caller, "CREATE TABLE a (id integer)")}
    path = f"/databases/{database['uuid']}/blueprint_applications"
    first = await caller.post(path, body, key="k")
    again = await caller.post(path, body, key="k")
    assert again.json()["idempotency_replay"] is True
    assert data_of(again) == data_of(first)


async def test_refusals(caller: Caller) -> None:
    database = await caller.created()
    path = f"/databases/{database['uuid']}/blueprint_applications"
    blueprint = await saved(caller, TITLED, variables=TITLE)
    other = "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"
    error_of(await caller.post(path, {"blueprint_uuid": other}), 404, "not_found")
    unknown = await caller.post(f"/databases/{other}/blueprint_applications", {"blueprint_uuid": blueprint})
    error_of(unknown, 404, "not_found")
    assert field_of(await caller.post(path, {}), "missing_required_field") == "blueprint_uuid"
    missing = await caller.post(path, {"blueprint_uuid": blueprint, "variables": {"name": "a"}})
    assert field_of(missing) == "variables.title"
    undeclared = {"name": "a", "title": "b", "color": "red"}
    assert (
        field_of(await caller.post(path, {"blueprint_uuid": blueprint, "variables": undeclared})) == "variables.color"
    )
    assert field_of(await caller.post(path, {"blueprint_uuid": blueprint, "timeout": 121})) == "timeout"
    for number in ("0", "999999999999999999999", "x", "1"):
        answer = await caller.get(f"/blueprint_applications/{number}")
        error_of(answer, 404, "not_found")


async def test_those_of_a_database_newest_first(service: RunningService, caller: Caller) -> None:
    database, neighbour = await caller.created(), await caller.created()
    made = [await applied(caller, database, "SELECT 1;"), await applied(caller, database, BROKEN)]
    await applied(caller, neighbour, "SELECT 1;")
    path = f"/databases/{database['uuid']}/blueprint_applications"
    listed = body_of(await caller.get(path))
    assert [(one["id"], one["status"]) for one in listed["data"]] == [
        (made[1]["id"], "failed"),
        (made[0]["id"], "completed"),
    ]
    assert all(one["execution_log"] is None and "sql_content" not in one for one in listed["data"])
    first = body_of(await caller.get(path, params={"limit": "1"}))
    assert first["has_more"] is True
    rest = body_of(await caller.get(path, params={"starting_after": str(first["data"][0]["id"])}))
    assert [one["id"] for one in rest["data"]] == [made[0]["id"]]
    assert field_of(await caller.get(path, params={"starting_after": "x"})) == "starting_after"
    stranger = await service.caller()
    error_of(await stranger.get(path), 404, "not_found")
