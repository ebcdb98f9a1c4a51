"""Extensions that databases have from the start, in blueprints."""

import pytest

from app.blueprints.preparation import prepare
from app.blueprints.validation import validate
from app.contracts.base import Engine
from app.store.session import fetch
from tests.support.answers import data_of, error_of
from tests.support.in_process import LoneApi

PROVIDED = frozenset({"citext", "vector"})
NEEDED = "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"
DUMP = f"""{NEEDED};
COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';
CREATE TABLE items (id int, embedding vector(3));
"""


def test_a_dump_that_needs_one_is_valid_where_it_is_provided() -> None:
    verdict = validate(DUMP, {}, PROVIDED)
    assert (verdict.valid, verdict.errors) == (True, [])
    assert verdict.manifest.extensions == ["vector"]
    texts = [one.text for one in prepare(DUMP, Engine.POSTGRES, {}, {}, PROVIDED)]
    assert [bool(text) for text in texts] == [True, False, True], "a tenant may not comment on it"


def test_a_dump_that_drops_it_first_leaves_it_there() -> None:
    """As `pg_dump --clean` does, of extensions of the tenant's own too."""
    script = f"DROP EXTENSION IF EXISTS vector;\nDROP EXTENSION citext;\n{DUMP}"
    verdict = validate(script, {}, PROVIDED)
    assert verdict.errors == []
    assert (
        "line 1: DROP EXTENSION vector is left out: the extension belongs to the server (left-out)" in verdict.warnings
    )
    texts = [bool(one.text) for one in prepare(script, Engine.POSTGRES, {}, {}, PROVIDED)]
    assert texts == [False, True, True, False, True]


def test_what_depends_on_it_is_not_taken_for_dropped() -> None:
    """The server refuses it."""
    script = "DROP EXTENSION vector CASCADE"
    assert [bool(one.text) for one in prepare(script, Engine.POSTGRES, {}, {}, PROVIDED)] == [True]


@pytest.mark.parametrize("script", [NEEDED, f"DO $$ BEGIN {NEEDED}; END $$"])
def test_it_is_refused_where_it_is_not(script: str) -> None:
    (error,) = validate(script, {}).errors
    assert "the extension vector needs a superuser" in error
    assert validate(script, {}, PROVIDED).valid


@pytest.mark.parametrize("script", ["CREATE EXTENSION vector", "DO $$ BEGIN CREATE EXTENSION vector; END $$"])
def test_one_that_is_there_can_not_be_made_again(script: str) -> None:
    (error,) = validate(script, {}, PROVIDED).errors
    assert error.endswith("write CREATE EXTENSION IF NOT EXISTS vector")
    assert validate(script.replace("vector", "citext"), {}, PROVIDED).valid


def test_a_value_does_not_name_another() -> None:
    assert not validate("CREATE EXTENSION IF NOT EXISTS dblink", {}, PROVIDED).valid


async def test_the_api_goes_by_what_the_hosts_have(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = {"name": "Vectors", "sql_content": DUMP}
    error_of(await caller.post("/blueprints", body), 422, "blueprint_invalid")
    assert not data_of(await caller.post("/blueprint_validations", {"sql_content": DUMP}))["valid"]
    await fetch("UPDATE engine_hosts SET extensions = '{vector}'")
    assert data_of(await caller.post("/blueprint_validations", {"sql_content": DUMP}))["valid"]
    made = data_of(await caller.post("/blueprints", body), 201)
    assert made["metadata"]["extensions"] == ["vector"]
