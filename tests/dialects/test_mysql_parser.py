"""sqlglot takes as many steps as a text has tokens, and some, or gives up. Each text here would take it for ever."""

import ast
import contextlib
from pathlib import Path
from typing import Any

import pytest
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError

from app.blueprints.validation import validate
from app.contracts.base import Engine
from app.dialects.mysql import parser
from app.dialects.mysql.splitter import split
from app.dialects.registry import DIALECTS
from app.dialects.verdict import Refused
from tests.dialects.corpus import mysql, postgres
from tests.support.together import together

LEVELS = 60
SCHEMAS = sorted((Path(__file__).parents[1] / "blueprints" / "schemas").glob("*/*.sql"))
MORE_FOR_EACH_TOKEN = 20
"""Far more than the bound, and nothing beside two to the power of `LEVELS`."""


def nested(word: str, inner: str = "'a'") -> str:
    return f"{word}(" * LEVELS + inner + ")" * LEVELS


INVOLVED = {
    **{word: f"SELECT {nested(word)}" for word in ("DATE", "CHAR", "DECIMAL", "TIMESTAMP", "ENUM", "JSON", "YEAR")},
    "types and functions in turn": "SELECT " + "DATE(UPPER(" * LEVELS + "'a'" + "))" * LEVELS,
    "two arguments": "SELECT " + "DECIMAL(1, " * LEVELS + "1" + ")" * LEVELS,
    "a table": f"SELECT * FROM {nested('INT', '1')}",
    "a type within a name": f"SELECT CAST(1 AS `{nested('DATE', '1')}`)",
    "a long literal, read at each level": f"SELECT {nested('DATE', 'JSON_EXTRACT(a, ' + repr('$.b' * 3000) + ')')}",
}


def honest() -> list[str]:
    corpora: tuple[Any, ...] = (mysql, postgres)
    statements = [sql for each in corpora for sql in (*each.READS, *each.WRITES, *each.CHANGES, *each.FIXTURE)]
    for file in SCHEMAS:
        script = file.read_text()
        statements += [script[statement.start : statement.end] for statement in split(script).statements]
    return statements


def test_honest_texts_take_a_tenth_of_what_they_may() -> None:
    for sql in honest():
        steps = parser.Steps()
        with contextlib.suppress(SqlglotError):  # PostgreSQL's
            parser.parse(sql, steps=steps)
        assert 10 * steps.taken < steps.most, sql


def test_hundreds_of_nested_calls_beside_each_other_are_read() -> None:
    calls = ", ".join(f"DATE(CHAR(DATE(c{n}))), JSON_EXTRACT(c{n}, '$.a[{n}].b')" for n in range(500))
    [tree] = parser.parse(f"SELECT {calls} FROM t")
    assert tree is not None


@together("sql", INVOLVED.values())
def test_what_takes_too_many_steps_is_given_up(sql: str) -> None:
    steps = parser.Steps()

    with pytest.raises(parser.TooInvolved):
        parser.parse(sql, steps=steps)

    tokens = MySQL().tokenize(sql)
    assert steps.taken < 2000 + MORE_FOR_EACH_TOKEN * len(tokens)


@together("sql", INVOLVED.values())
def test_a_question_is_refused(sql: str) -> None:
    with pytest.raises(Refused, match="nested too deeply"):
        DIALECTS[Engine.MYSQL].judge(sql, "tenantsown")


def test_a_script_is_left_to_the_server() -> None:
    """Whichever: scripts for PostgreSQL are read as MySQL's too."""
    script = "CREATE TABLE t (id INT);\n" + "".join(f"{sql};\n" for sql in INVOLVED.values())

    verdict = validate(script, {})

    assert "MySQL" not in str(verdict.errors)


def test_a_script_takes_few_steps_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of statements, each of which takes all that it may."""
    made: list[parser.Steps] = []

    class Counted(parser.Steps):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(parser, "Steps", Counted)

    assert DIALECTS[Engine.MYSQL].analyze(f"{INVOLVED['DATE']};\n" * 3000).faults == []
    assert 20 < len(made) < 200
    assert sum(steps.taken for steps in made) < 110_000


def test_nothing_else_reaches_sqlglots_parser() -> None:
    found = set()
    for file in Path("app").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            harmless = isinstance(node, ast.ImportFrom) and node.module == "sqlglot" and node.names[0].name == "exp"
            if any(module.startswith("sqlglot") and module != "sqlglot.errors" for module in modules) and not harmless:
                found.add(file)
    assert found == {Path("app/dialects/mysql/parser.py")}
