"""Reading a script takes work in proportion to its size. The work is what the interpreter does, counted by its
instructions: a clock would tell of the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from app.blueprints.preparation import ScriptError, prepare
from app.blueprints.reading import likelier
from app.blueprints.validation import validate
from app.contracts.base import Engine
from app.dialects.analysis import MAX_STATEMENTS
from app.dialects.postgres.parser import on_deep_stack
from tests.support.together import together

STATEMENTS = 40
MOST_OF_DOUBLE = 2.1
"""How much more work twice the script may be. Quadratic work is four times as much."""
DEFINITIONS = {"a": {"type": "integer", "default": 5}, "t": {"type": "identifier", "default": "pets"}}
UNITS = {
    "plain": "INSERT INTO pets VALUES ({}, 'Rex');\n",
    "values": "INSERT INTO {{{{t}}}} VALUES ({{{{a}}}}, {});\n",
    "tables": "CREATE TABLE t{} (id integer PRIMARY KEY, name varchar(20));\n",
    "changes": "ALTER TABLE t{} ADD a integer, DROP b;\n",
    "drops": "DROP TABLE t{};\n",
    "comments": "-- {}\n/* b */ SELECT 1;\n",
    "literals": "SELECT '{{{{a}}}} {}';\n",
    "settings": "SELECT set_config('a.b', '{}', false);\n",
    "other characters": "SELECT 'ä{}';\n",
}


def script(unit: str, count: int) -> str:
    return "".join(unit.format(number) for number in range(1000, 1000 + count))


def work(run: Callable[[], object]) -> int:
    """Instructions that the interpreter executes. All of it on one thread, which is the only one that is counted."""
    count = 0

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return look

    def counted() -> None:
        before = sys.gettrace()
        sys.settrace(look)
        try:
            run()
        finally:
            sys.settrace(before)

    on_deep_stack(counted)
    return count


def check_linear(run: Callable[[int], object], count: int = STATEMENTS) -> None:
    run(2)  # what is made once is made before
    once, twice = work(lambda: run(count)), work(lambda: run(2 * count))
    assert once > count
    assert twice < MOST_OF_DOUBLE * once, (once, twice)


@together("unit", UNITS)
def test_validation(unit: str) -> None:
    check_linear(lambda count: validate(script(UNITS[unit], count), DEFINITIONS))


@together("engine", Engine)
@together("unit", ["plain", "values", "tables", "literals"])
def test_preparation(unit: str, engine: Engine) -> None:
    check_linear(lambda count: prepare(script(UNITS[unit], count), engine, DEFINITIONS, {}), 80)


def test_values_in_one_statement() -> None:
    for engine in Engine:
        check_linear(
            lambda count, engine=engine: prepare(  # type: ignore[misc]
                f"INSERT INTO pets VALUES {', '.join(['({{a}})'] * count)}", engine, DEFINITIONS, {}
            )
        )


def test_placeholders_of_any_name() -> None:
    """Each has a name of its own, which may stand in every message."""
    check_linear(lambda count: validate(script("DROP TABLE {{{{t{}}}}};\n", count), None), 100)


def test_a_script_of_empty_lines_is_told_apart_in_one_pass() -> None:
    """Within the regular expressions nothing is counted: with a second pass for each line this takes minutes."""
    assert likelier("\n" * 100_000) is None
    assert likelier(" " * 100_000) is None


@pytest.mark.parametrize(("piece", "engine"), [("SELECT 1;", Engine.POSTGRES), (";", Engine.MYSQL)])
def test_a_megabyte_of_tiny_statements_is_refused_by_its_line(piece: str, engine: Engine) -> None:
    text = f"{piece}\n" * ((1 << 20) // (len(piece) + 1))
    verdict = validate(text, None)
    assert not verdict.valid
    assert verdict.manifest.dialects == []
    assert verdict.errors[0].startswith(f"line {MAX_STATEMENTS + 1}, column 1 (")
    assert f"at most {MAX_STATEMENTS} statements" in verdict.errors[0]
    with pytest.raises(ScriptError, match=f"at most {MAX_STATEMENTS} statements"):
        prepare(text, engine, None, None)


@pytest.mark.parametrize("sign", ["", "SELECT `a`;\n"])
def test_as_many_statements_as_a_script_may_hold(sign: str) -> None:
    text = sign + "SELECT 1;\n" * (MAX_STATEMENTS - bool(sign)) + "-- the end\n"
    assert validate(text, None).statement_count == MAX_STATEMENTS
    assert not validate(f"{text}SELECT 2", None).valid


def test_lines_for_psql_are_counted_too() -> None:
    assert "at most" in validate("\\restrict a\n" * (MAX_STATEMENTS + 1), None).errors[0]


def test_a_long_delimiter_is_refused() -> None:
    """Each token is held against it."""
    verdict = validate(f"DELIMITER {'a' * 100_000}\n{'`a` ' * 100_000}", None)
    assert "a delimiter has at most 16 characters" in str(verdict.errors)


def test_a_long_name_is_not_in_every_message() -> None:
    name = "a" * 100_000
    verdict = validate(f"ALTER TABLE `{name}` {', '.join(['DROP b'] * 1000)}", None)
    assert max(len(warning) for warning in verdict.warnings) < 1000
