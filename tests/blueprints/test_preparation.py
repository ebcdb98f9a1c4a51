"""Statements ready to be applied: values where placeholders stood, and nothing else changed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.blueprints.preparation import MAX_LOG_TEXT, ScriptError, prepare, secrets_of
from app.blueprints.validation import validate
from app.blueprints.variables import VariableError
from app.contracts.base import Engine

SCRIPT = """CREATE TABLE {{table}} ({{ column }} VARCHAR({{length}}) DEFAULT {{text}}, ok BOOLEAN DEFAULT {{flag}});
-- {{text}} in a comment; untouched
INSERT INTO {{table}} ({{column}}) VALUES ({{text}}), ('{{text}} ${text} {{other}}'), ({{choice}});
UPDATE {{table}} SET {{column}} = {{text}} WHERE LENGTH({{column}}) >-{{number}} AND 1 <{{number}};
DELETE FROM {{table}} WHERE {{column}} = {{text}}"""
DEFINITIONS: dict[str, Any] = {
    "table": {"type": "identifier"},
    "column": {"type": "identifier", "default": "name"},
    "length": {"type": "integer", "min": 1, "max": 100, "default": 20},
    "text": {"type": "string"},
    "flag": {"type": "boolean", "default": True},
    "choice": {"type": "enum", "values": ["a'b", "c"], "default": "a'b"},
    "number": {"type": "number", "default": -1.5},
}
KINDS = ["CREATE TABLE", "INSERT", "UPDATE", "DELETE"]

each_engine = pytest.mark.parametrize("dialect", list(Engine))
NASTY = st.lists(
    st.sampled_from(
        [
            *(
                "'",
                "''",
                '"',
                "`",
                "\\",
                "\\'",
                "--",
                "-- ",
                "#",
                "/*",
                "*/",
                "/*!",
                ";",
                "$$",
                "$a$",
                "{{text}}",
                "{{",
                "}}",
            ),
            *(
                "\n",
                "\r",
                "\t",
                " ",
                "DROP TABLE x",
                "); DROP TABLE x; --",
                "' OR 1=1 -- ",
                "\u2019",
                "\u02bc",
                "\uff05",
                "ÿ'",
                "¿'",
            ),
            *(
                "\x1a",
                "\x08",
                "E'",
                "U&'",
                "N'",
                "_utf8'",
                "0x27",
                "%",
                "%s",
                "$1",
                ":x",
                "?",
                "\\0",
                "\x7f",
                "\u2028",
                "\xa0",
            ),
        ]
    )
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
    max_size=12,
).map("".join)
NAMES = NASTY.map(
    lambda text: (
        "n"
        + "".join(c for c in text if c.isprintable() and ord(c) <= 0xFFFF).encode()[:60].decode(errors="ignore")
        + "n"
    )
)


def _check(dialect: Engine, values: dict[str, Any]) -> None:
    statements = prepare(SCRIPT, dialect, DEFINITIONS, values)

    assert [statement.kind for statement in statements] == KINDS
    assert [statement.line for statement in statements] == [1, 3, 4, 5]
    again = validate(";\n".join(statement.text for statement in statements), {})
    assert dialect in again.manifest.dialects, again.errors
    assert [statement.kind for statement in again.manifest.statements] == KINDS
    assert "'{{text}} ${text} {{other}}'" in statements[1].text


@each_engine
@settings(max_examples=100)
@given(
    text=NASTY,
    table=NAMES,
    column=NAMES,
    number=st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
)
def test_no_value_changes_the_statements(dialect: Engine, text: str, table: str, column: str, number: float) -> None:
    _check(dialect, {"text": text, "table": table, "column": column, "number": number})


@pytest.mark.soak
@each_engine
@settings(max_examples=5000)
@given(
    text=NASTY,
    table=NAMES,
    column=NAMES,
    number=st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
)
def test_no_value_of_thousands_changes_the_statements(
    dialect: Engine, text: str, table: str, column: str, number: float
) -> None:
    _check(dialect, {"text": text, "table": table, "column": column, "number": number})


@each_engine
@pytest.mark.parametrize("number", [-1, -0.0, -1e-320, 1e300, -(2**63)])
def test_a_sign_makes_no_comment(dialect: Engine, number: float) -> None:
    _check(dialect, {"text": "", "table": "t", "number": number})


def test_values_are_quoted_for_each_engine() -> None:
    values = {"table": 'we"ird`', "text": "it's \\", "length": 7, "flag": False, "number": 2.5}
    postgres, mysql = (prepare(SCRIPT, dialect, DEFINITIONS, values) for dialect in (Engine.POSTGRES, Engine.MYSQL))

    assert postgres[0].text == (
        'CREATE TABLE "we""ird`" ("name" VARCHAR(7) DEFAULT E\'it\'\'s \\\\\', ok BOOLEAN DEFAULT FALSE)'
    )
    assert (
        mysql[0].text == "CREATE TABLE `we\"ird``` (`name` VARCHAR(7) DEFAULT 'it''s \\\\', ok BOOLEAN DEFAULT FALSE)"
    )
    assert postgres[0].object == 'we"ird`'


@each_engine
@pytest.mark.parametrize(
    "script",
    [
        "SELECT {{a}}{{b}}",
        "SELECT x{{a}}",
        "SELECT {{a}}x",
        "SELECT '{{b}}'{{a}}",
        "SELECT {{a}}'x'",
        "SELECT 1{{n}}",
        "CREATE TABLE {{a}}_users (id INT)",
        "SELECT U&{{a}}",
        "SELECT @{{a}}",
        "SELECT ${{a}}",
        "SELECT {{}}",
        "SELECT {{ a b }}",
        "SELECT {{1a}}",
        "SELECT {{a-b}}",
        "SELECT {{{a}}}",
        "SELECT {{a",
    ],
)
def test_a_placeholder_stands_alone(dialect: Engine, script: str) -> None:
    definitions = {"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer"}}
    with pytest.raises(ScriptError) as caught:
        prepare(script, dialect, definitions, {"a": "x", "b": "y", "n": 1})

    assert all(error.startswith("line 1, column ") for error in caught.value.errors)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("SELECT {{a}}('/etc/passwd')", "pg_read_file"),
        ("SELECT {{a}}(1)", "lo_export"),
        ("SET {{a}} = 'postgres'", "role"),
        ("SET {{a}} = 'x'", "session_authorization"),
    ],
)
def test_what_is_forbidden_is_forbidden_in_a_value_too(script: str, value: str) -> None:
    with pytest.raises(VariableError, match="The variable a"):
        prepare(script, Engine.POSTGRES, {"a": {"type": "identifier"}}, {"a": value})


def test_undeclared_placeholders_are_errors_with_their_place() -> None:
    verdict = validate("SELECT 1;\nSELECT {{a}}, {{b}}", {"a": {"type": "integer"}})

    assert not verdict.valid
    assert "line 2, column 15 (PostgreSQL): {{b}} is not declared among the variables" in verdict.errors


def test_without_definitions_placeholders_stand_for_whatever_fits() -> None:
    script = (
        "CREATE TABLE {{t}} (a VARCHAR({{n}}));\nCOMMENT ON TABLE {{t}} IS {{words}};\nSELECT * FROM {{t}} LIMIT {{m}}"
    )
    verdict = validate(script, None)

    assert verdict.errors == []
    assert {name: variable.lines for name, variable in verdict.manifest.variables.items()} == {
        "m": [3],
        "n": [1],
        "t": [1, 2, 3],
        "words": [2],
    }
    assert verdict.manifest.objects == {"tables": ["{{t}}"]}


@each_engine
def test_secret_values_are_in_no_log_text(dialect: Engine) -> None:
    definitions = {"p": {"type": "string", "secret": True}, "q": {"type": "string"}}
    [statement] = prepare("SELECT {{p}},   {{q}}", dialect, definitions, {"p": "hunter2's", "q": "shown"})

    assert "hunter2''s" in statement.text
    assert statement.log_text == "SELECT '***', 'shown'"
    values = {"p": "hunter2's", "q": "shown"}
    message = secrets_of(definitions, values).hide("syntax error near 'hunter2''s' and hunter2's, shown")
    assert message == "syntax error near '***' and ***, shown"


@pytest.mark.parametrize("values", [{"p": None}, {}, None])
def test_a_default_that_is_secret_is_hidden(values: dict[str, Any] | None) -> None:
    """Whether its variable isn't given, or given as null."""
    definitions = {"p": {"type": "string", "secret": True, "default": "hunter2's"}}
    [statement] = prepare("SELECT {{p}}", Engine.POSTGRES, definitions, values)
    assert "hunter2''s" in statement.text
    assert secrets_of(definitions, values).hide("near 'hunter2''s'") == "near '***'"


@each_engine
def test_values_make_no_script_of_any_length(dialect: Engine) -> None:
    """A megabyte of script with a megabyte of value would be hundreds of gigabytes."""
    script = f"SELECT {', '.join(['{{a}}'] * 10_000)}, {{{{b}}}}"
    definitions = {"a": {"type": "string"}, "b": {"type": "string"}}
    with pytest.raises(VariableError, match="The variable a makes the script longer than 16777216 characters"):
        prepare(script, dialect, definitions, {"a": "x" * 2000, "b": "y" * 5000})


@each_engine
def test_log_texts_are_short(dialect: Engine) -> None:
    [statement] = prepare(f"SELECT '{'x' * 5000}'", dialect, None, None)

    assert len(statement.log_text) == MAX_LOG_TEXT
    assert statement.log_text.endswith("…")


@each_engine
@pytest.mark.parametrize("value", ["a  b\n" * 500, "x" * 5000, " " * 5000 + "y", "y" + " " * 5000, "short  one"])
def test_a_log_text_is_the_beginning_of_its_statement_in_one_line(dialect: Engine, value: str) -> None:
    [statement] = prepare("SELECT  {{a}},\n{{a}}", dialect, {"a": {"type": "string"}}, {"a": value})

    line = " ".join(statement.text.split())
    assert statement.log_text == (line if len(line) <= MAX_LOG_TEXT else f"{line[: MAX_LOG_TEXT - 1]}…")


def test_left_out_statements_are_listed_and_empty() -> None:
    script = "SET lock_timeout = 0;\nALTER TABLE a OWNER TO postgres;\nSELECT 1"
    statements = prepare(script, Engine.POSTGRES, None, None)

    assert [
        (statement.index, statement.kind, bool(statement.left_out), bool(statement.text)) for statement in statements
    ] == [
        (1, "SET", True, False),
        (2, "ALTER TABLE", True, False),
        (3, "SELECT", False, True),
    ]


def test_definers_are_cut_out() -> None:
    script = "CREATE DEFINER=`a`@'%' SQL SECURITY INVOKER VIEW v AS SELECT 1"
    [statement] = prepare(script, Engine.MYSQL, None, None)

    assert statement.text == "CREATE  SQL SECURITY INVOKER VIEW v AS SELECT 1"


@each_engine
def test_an_engine_that_it_is_not_for(dialect: Engine) -> None:
    script = "CREATE TABLE t (a JSONB)" if dialect is Engine.MYSQL else "CREATE TABLE `t` (a INT)"
    with pytest.raises(ScriptError, match="line 1, column "):
        prepare(script, dialect, None, None)
