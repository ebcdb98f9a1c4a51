"""Common mistakes in scripts for MySQL: found without a server, each where it is."""

from app.contracts.base import Engine
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
