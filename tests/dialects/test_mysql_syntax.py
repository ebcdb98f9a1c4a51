"""Common mistakes in scripts for MySQL: found without a server, each where it is."""

from app.blueprints.validation import validate
from app.contracts.base import Engine
from app.dialects.mysql.scripts.reader import Reader
from app.dialects.mysql.scripts.syntax import token_errors
from app.dialects.mysql.splitter import split
from app.dialects.positions import Lines
from app.dialects.registry import DIALECTS
from tests.support.together import together

FIRST = "CREATE TABLE `a` (id INT);\n"


@together(
    ("script", "place", "message"),
    [
        ("SELECT *\nFORM a", "line 3, column 6", 'syntax error near "a"'),
        ("CREATE TABLE b (id INT,\n  note TXT)", "line 3, column 8", 'syntax error near "TXT"'),
        ("CREATE TABLE b (\n  id INT,\n)", "line 4, column 1", "there is nothing between `,` and `)`"),
        ("CREATE TABLE b (id INT", "line 2, column 16", "this `(` is never closed"),
        ("INSERT INTO a VALUES (1))", "line 2, column 25", "this `)` closes nothing"),
        ("INSERT INTO a VALUES (1),", "line 2, column 25", "nothing follows this `,`"),
        ("UPDATE a id = 1", "line 2, column 13", "syntax error near"),
        ("CREATE TABLE 'b' (id INT)", "line 2, column 14", "names stand in backticks, not in quotes"),
        ("CREATE TABLE b (id INT);\nSELEC 1", "line 3, column 1", "begins no statement"),
        ("CREATE TABLE b (id\n  JSONB)", "line 3, column 3", "JSONB is no type of MySQL"),
        ("CREATE TABLE b (id TIMESTAMPTZ)", "line 2, column 20", "TIMESTAMPTZ is no type of MySQL"),
        ("CREATE TABLE b (id INT GENERATED ALWAYS AS IDENTITY)", "line 2, column 44", "MySQL has AUTO_INCREMENT"),
        ("INSERT INTO a VALUES (1) ON CONFLICT DO NOTHING", "line 2, column 29", "MySQL has ON DUPLICATE KEY UPDATE"),
        ("SELECT id::text FROM a", "line 2, column 10", "write CAST(… AS …)"),
        ("SELECT id FROM a WHERE id ILIKE 'b'", "line 2, column 27", "ILIKE is PostgreSQL's"),
        ("CREATE FUNCTION f() RETURNS INT AS $$ SELECT 1 $$", "line 2, column 36", "dollar quoting"),
    ],
)
def test_a_mistake_where_it_is(script: str, place: str, message: str) -> None:
    text = FIRST + script
    faults = DIALECTS[Engine.MYSQL].analyze(text).faults

    assert [(Lines(text).place(fault.offset), message in fault.message) for fault in faults[:1]] == [(place, True)], (
        faults
    )


@together(
    "statement",
    [
        "CREATE TABLE b (id INT, total INT GENERATED ALWAYS AS ((id + 1)) STORED, at TIMESTAMP)",
        "CREATE TABLE b (money INT, xml TEXT, `array` INT, jsonb JSON, timestamptz TIMESTAMP, KEY money (money))",
        "INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE id = 2",
        "INSERT INTO a (id) SELECT id FROM conflict",
        "ALTER TABLE a ADD COLUMN b INT FIRST, ALGORITHM=INPLACE, LOCK=NONE",
        "CREATE INDEX i ON a (id) USING BTREE COMMENT 'x' ALGORITHM=COPY",
        "DROP TABLE IF EXISTS a, b CASCADE",
        "RENAME TABLE a TO b, c TO d",
    ],
)
def test_what_servers_take_is_not_refused(statement: str) -> None:
    assert DIALECTS[Engine.MYSQL].analyze(statement).faults == []


@together(
    "statement",
    [
        "SELECT DATE_ADD(1)",
        "SELECT var_map(x) FROM a",
        "CREATE TABLE b (n INT) DEFAULT COMMENT='x'",
        "DELIMITER //\nSELECT 1; SELECT 2//",
    ],
)
def test_what_sqlglot_fails_at_is_left_to_the_server(statement: str) -> None:
    """It raises errors of its own here, or reads two statements. Scripts for PostgreSQL are read as MySQL's too."""
    assert DIALECTS[Engine.MYSQL].analyze(FIRST + statement).faults == []


def test_a_script_for_postgresql_at_which_sqlglot_fails_is_valid() -> None:
    assert validate("CREATE TABLE a (n integer[2]);\n", {}).manifest.dialects == [Engine.POSTGRES]
    assert validate("CREATE TABLE a (n integer);\nSELECT var_map(n) FROM a;\n", {}).valid


def test_hundreds_of_thousands_of_words_that_quote_with_dollars() -> None:
    """With a search from the start for each of them this takes hours."""
    script = "SELECT " + " ".join(f"$${number}" for number in range(500_000))
    [statement] = split(script).statements
    assert [offset for offset, _ in token_errors(Reader(script, statement))] == [len("SELECT ")]
