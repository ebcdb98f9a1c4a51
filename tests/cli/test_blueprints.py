"""`headwater blueprints`."""

from pathlib import Path

import pytest

from app.blueprints.shipped import SHIPPED
from app.store.session import fetch
from tests.cli.command import Headwater
from tests.support.store import store

SQL = "CREATE TABLE {{table}} (id integer PRIMARY KEY);\n"
TABLE = '{"table": {"type": "identifier", "default": "notes"}}'


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The SQL and the variables."""
    sql, variables = tmp_path / "notes.sql", tmp_path / "notes.json"
    sql.write_text(SQL)
    variables.write_text(TABLE)
    return str(sql), str(variables)


async def test_publishing(headwater: Headwater, control_dsn: str, files: tuple[str, str]) -> None:
    sql, variables = files
    publish = ("blueprints", "publish", sql, "--name", "Notes", "--variables", variables)
    first = await headwater.json(*publish)
    assert (first["slug"], first["version"], first["dialects"]) == ("notes", 1, ["postgres", "mysql"])
    assert (await headwater.json(*publish, "--description", "Short ones."))["version"] == 1
    _add_a_table(Path(sql))
    again = await headwater.json(*publish)
    assert (again["uuid"], again["version"]) == (first["uuid"], 2)
    async with store(control_dsn):
        rows = await fetch("SELECT is_system, team_id, description FROM blueprints")
    assert [tuple(row) for row in rows] == [(True, None, None)]


def _add_a_table(file: Path) -> None:
    file.write_text(f"{SQL}CREATE TABLE b (id integer);\n")


async def test_those_that_come_along(headwater: Headwater) -> None:
    shipped = await headwater.json("blueprints", "ship")
    assert [one["name"] for one in shipped] == [one.name for one in SHIPPED]
    assert await headwater.json("blueprints", "ship") == shipped


async def test_what_cant_be_published(headwater: Headwater, files: tuple[str, str], tmp_path: Path) -> None:
    sql, variables = files
    assert "table" in await headwater.refusal("blueprints", "publish", sql, "--name", "Notes")
    assert "name" in await headwater.refusal("blueprints", "publish", sql, "--name", " ", "--variables", variables)
    broken = tmp_path / "broken"
    broken.write_bytes(b"CREATE TABLE a (id integer);\nCOMMIT;")
    assert "line 2" in await headwater.refusal("blueprints", "publish", str(broken), "--name", "Notes")
    assert "JSON" in await headwater.refusal("blueprints", "publish", sql, "--name", "n", "--variables", str(broken))
    broken.write_bytes(b"SELECT \xff")
    assert "UTF-8" in await headwater.refusal("blueprints", "publish", str(broken), "--name", "Notes")
    await headwater.refusal("blueprints", "publish", str(tmp_path / "nothing"), "--name", "Notes", exit_code=2)
