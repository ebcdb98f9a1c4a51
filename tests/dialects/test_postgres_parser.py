"""The guards around PostgreSQL's parser: nothing brings the process down, and errors are where they are."""

import ast
import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.dialects.analysis import MAX_CHARACTERS
from app.dialects.errors import SqlError
from app.dialects.postgres.parser import on_deep_stack, parse_statements

N = 100_000


def _parse(script: str) -> list[tuple[str, str]]:
    return on_deep_stack(
        lambda: [(found.name, script[found.start : found.end].strip()) for found in parse_statements(script)]
    )


def test_statements_have_their_place_in_characters() -> None:
    assert _parse("SELECT 'ü'; -- é\nDELETE FROM ä;;\n") == [
        ("select_stmt", "SELECT 'ü'"),
        ("delete_stmt", "DELETE FROM ä"),
    ]


def test_errors_have_their_place_in_characters() -> None:
    with pytest.raises(SqlError) as caught:
        _parse("SELECT 'üü'; CREATE TABLE é (a int,)")

    assert caught.value.offset == 35
    assert caught.value.message == 'syntax error at or near ")"'


@pytest.mark.parametrize(
    "script",
    [
        "SELECT " + "(" * N + "1" + ")" * N,
        "SELECT " + "(" * N,
        "SELECT 1" + "+1" * N,
        "SELECT 1" + "||'a'" * N,
        "SELECT 1 " + "UNION SELECT 1 " * N,
        "SELECT 1, 2 " + "UNION SELECT 1, 2 " * N,
        "SELECT " + "NOT " * N + "true",
        "SELECT " + "CASE WHEN true THEN " * N + "1" + " END" * N,
        "SELECT * FROM t " + "JOIN t USING (a, b) " * N,
        "SELECT " + "ARRAY[" * N + "1" + "]" * N,
        "SELECT " + "- " * N + "1",
        "SELECT 1" + "::int" * N,
        "SELECT a" + "[1]" * N,
        "SELECT a" + ".a" * N,
        "/*" * N + "*/" * N + "SELECT 1",
        "SELECT '/*' " + "/*" * N,
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1" + "+1" * N + "; END",
        "SELECT " + "f(1, " * N + "1" + ")" * N,
        "WITH a AS (" * N + "SELECT 1" + ") SELECT 1" * N,
    ],
    ids=lambda script: script[:30],
)
def test_deep_nesting_is_an_error_and_no_crash(script: str) -> None:
    with pytest.raises(SqlError):
        _parse(script)


@pytest.mark.parametrize(
    "script",
    [
        "SELECT 1" + "+1" * 4000,
        "SELECT 1, 2 " + "UNION ALL SELECT 1, 2 " * 1500,
        "SELECT " + "NOT " * 3000 + "true",
        "SELECT * FROM t " + "JOIN t USING (a, b) " * 1500,
        "INSERT INTO t VALUES " + ", ".join("(1, 'a', 2 + 3)" for _ in range(20_000)),
        "SELECT a IN (" + ", ".join(str(n) for n in range(50_000)) + ")",
        "SELECT 1;" * 30_000,
    ],
    ids=lambda script: script[:30],
)
def test_long_but_honest_scripts_parse(script: str) -> None:
    assert _parse(script)


def test_a_nul_character_is_an_error() -> None:
    with pytest.raises(SqlError, match="NUL"):
        _parse("SELECT 1;\0 DROP TABLE t")


def test_a_text_beyond_all_scripts_is_an_error() -> None:
    with pytest.raises(SqlError, match="at most"):
        parse_statements(" " * (MAX_CHARACTERS + 1))


def test_work_for_a_deep_stack_has_a_thread_of_its_own() -> None:
    """Never the one that an event loop runs in."""
    outer, inner = on_deep_stack(lambda: (threading.get_ident(), on_deep_stack(threading.get_ident)))
    assert outer == inner != threading.get_ident()


def test_nothing_else_reaches_the_parser() -> None:
    found = set()
    for file in Path("app").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom | ast.Import) else set()
            if isinstance(node, ast.Import) and "postgast" in names:
                found.add(file)
            if isinstance(node, ast.ImportFrom) and node.module == "postgast" and names - {"walk", "pg_query_pb2"}:
                found.add(file)
    assert found == {Path("app/dialects/postgres/parser.py")}


def test_questions_are_parsed_as_deep_as_scripts_whatever_was_imported_first() -> None:
    """A tree is decoded to a depth of 100 only, until a switch of the process is set."""
    code = (
        "from app.dialects.postgres.judge.rules import classified\n"
        "print(len(classified('SELECT ' + ' || '.join(['name'] * 300) + ' FROM pets')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def test_scripts_leave_no_thread_local_keys_behind() -> None:
    for _ in range(20):
        _parse("SELECT 1")
    before = _free_thread_local_keys()
    for _ in range(100):
        _parse("SELECT 1")
    assert _free_thread_local_keys() == before


def _free_thread_local_keys() -> int:
    """A process has about a thousand, and a library that gets none fails in its own way."""
    library = ctypes.CDLL(None)
    keys = []
    while library.pthread_key_create(ctypes.byref(key := ctypes.c_uint()), None) == 0:
        keys.append(key)
    for key in keys:
        library.pthread_key_delete(key)
    return len(keys)
