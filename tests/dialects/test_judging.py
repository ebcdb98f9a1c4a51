"""The first wall by itself: what is refused, what is allowed and as what, in whatever clothes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.contracts.base import Engine
from app.dialects.mysql.judge.show import is_schema_query
from app.dialects.registry import DIALECTS
from app.dialects.verdict import MOST_CHARACTERS, Refused, SqlClass, Unreadable
from tests.dialects.corpus import mysql, postgres
from tests.dialects.corpus.mutations import in_any_clothes, mutations
from tests.support.together import together

CORPORA: dict[Engine, Any] = {Engine.POSTGRES: postgres, Engine.MYSQL: mysql}
DATABASE = "tenantsown"
CLASSES = {"READS": SqlClass.SELECT, "WRITES": SqlClass.WRITE, "CHANGES": SqlClass.DDL_BATCH}
QUOTE_PAIRS = "'" * 5_000_000
each_engine = pytest.mark.parametrize("engine", Engine)


def allowed(engine: Engine) -> list[tuple[SqlClass, str]]:
    return [(kind, sql) for name, kind in CLASSES.items() for sql in getattr(CORPORA[engine], name)]


@each_engine
def test_what_is_allowed_and_as_what(engine: Engine) -> None:
    wrong = {sql: found for kind, sql in allowed(engine) if (found := verdict(engine, sql)) != kind}
    assert wrong == {}


@each_engine
def test_what_is_refused(engine: Engine) -> None:
    assert [sql for sql in CORPORA[engine].REFUSED if isinstance(verdict(engine, sql), SqlClass)] == []


@each_engine
def test_clothes_change_nothing(engine: Engine) -> None:
    wrong = []
    for name, mutate in mutations(engine.value).items():
        wrong += [(name, sql) for kind, sql in allowed(engine) if verdict(engine, mutate(sql)) != kind]
        wrong += [(name, sql) for sql in CORPORA[engine].REFUSED if isinstance(verdict(engine, mutate(sql)), SqlClass)]
    assert wrong == []


def verdict(engine: Engine, sql: str) -> SqlClass | str:
    try:
        return DIALECTS[engine].judge(sql, DATABASE).sql_class
    except Refused as refused:
        return refused.reason


@each_engine
def test_the_judged_text_is_the_whole_of_it(engine: Engine) -> None:
    for sql in CORPORA[engine].READS:
        [text] = DIALECTS[engine].judge(sql, DATABASE).statements
        assert text == sql.rstrip(";")


def test_comments_are_gone_before_mysql_sees_them() -> None:
    sql = "SELECT 1 -- first\n, /* second */ 2 # third\n, '-- # /* kept */', \"#\", `a#b` FROM t"
    [text] = DIALECTS[Engine.MYSQL].judge(sql, DATABASE).statements
    assert text.split() == [
        "SELECT",
        "1",
        ",",
        "2",
        ",",
        "'--",
        "#",
        "/*",
        "kept",
        "*/',",
        '"#",',
        "`a#b`",
        "FROM",
        "t",
    ]


def test_comments_are_where_mysql_has_them() -> None:
    """Two dashes begin one before a blank or a control character of ASCII, and before nothing else."""
    [text] = DIALECTS[Engine.MYSQL].judge("SELECT 1 --\x7f, 2", DATABASE).statements
    assert text == "SELECT 1"
    [text] = DIALECTS[Engine.MYSQL].judge("SELECT 1 --2", DATABASE).statements
    assert text == "SELECT 1 --2"
    for sql in ("SELECT 1 --\xa0, 2", "SELECT 1 /*M!999999\\- , 2 */", "SELECT 1 /*!50000 , 2 */", "SELECT /*+ a */ 1"):
        with pytest.raises(Refused):
            DIALECTS[Engine.MYSQL].judge(sql, DATABASE)


def test_statements_are_distinguished_where_the_server_does() -> None:
    made = DIALECTS[Engine.MYSQL].judge("CREATE TABLE a (n INT COMMENT ';--;'); CREATE INDEX i ON a (n);;", DATABASE)
    assert made.statements == ("CREATE TABLE a (n INT COMMENT ';--;')", "CREATE INDEX i ON a (n)")
    made = DIALECTS[Engine.POSTGRES].judge(
        "CREATE TABLE ü (n int DEFAULT ';'::int); /* ; */ CREATE INDEX ON ü (n) ;;", DATABASE
    )
    assert len(made.statements) == 2
    assert made.statements[0] == "CREATE TABLE ü (n int DEFAULT ';'::int)"


@each_engine
def test_the_tenants_own_database_may_be_named(engine: Engine) -> None:
    sql = f"SELECT * FROM {DATABASE}.orders" if engine is Engine.MYSQL else "SELECT * FROM public.orders"
    assert verdict(engine, sql) is SqlClass.SELECT


@together(
    "sql",
    [
        f"SHOW TABLES FROM {DATABASE}",
        f"SHOW FULL TABLES IN `{DATABASE}` LIKE 'o%'",
        f"SHOW COLUMNS FROM {DATABASE.upper()}.orders",
        f"SHOW COLUMNS FROM orders FROM `{DATABASE}`",
        f"SHOW INDEX FROM `{DATABASE}`.`orders` IN {DATABASE}",
        f"SHOW CREATE TABLE {DATABASE} . orders",
        f"DESCRIBE {DATABASE}.orders id",
        f"EXPLAIN SELECT * FROM {DATABASE}.orders",
        "SHOW COLUMNS FROM bücher",
        "SHOW COLUMNS FROM `a``b`",
        "DESCRIBE `select`",
        "SHOW TABLES FROM`tenantsown`LIKE'x'",
    ],
)
def test_what_there_is_may_be_asked_of_the_own_database(sql: str) -> None:
    assert verdict(Engine.MYSQL, sql) is SqlClass.SELECT


@together(
    "text",
    [
        f"DESC {'a' * 5_000_000}!",
        f"DESC {'`' * 5_000_000}!",
        f"SHOW COLUMNS FROM {'a' * 5_000_000}!",
        f"DESC a {QUOTE_PAIRS}!",
        f"SHOW TABLES LIKE {QUOTE_PAIRS}!",
    ],
)
def test_a_long_name_or_text_is_tried_at_one_length(text: str) -> None:
    """Split at each of its characters in turn, it would take days."""
    try:
        assert not is_schema_query(text, DATABASE)
    except Refused:
        assert text.startswith("SHOW")


def test_what_a_parser_stumbles_over_is_unreadable() -> None:
    """sqlglot raises a `TypeError` of its own here."""
    with pytest.raises(Unreadable):
        DIALECTS[Engine.MYSQL].judge("CREATE TABLE a (n INT) DEFAULT COMMENT='x'", DATABASE)


@pytest.mark.parametrize(
    "sql", ["SHOW\u00a0TABLES", "\u017fHOW TABLES", "SHOW TABLES FROM `tenantsown``x`", "SHOW TABLE\u017f"]
)
def test_letters_that_only_look_alike(sql: str) -> None:
    assert not isinstance(verdict(Engine.MYSQL, sql), SqlClass)


@each_engine
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 7000 + "1" + ")" * 7000,
        "SELECT 1" + "+1" * 7000,
        "SELECT " + "NOT " * 3500 + "1",
        "SELECT " + "- " * 7000 + "1",
        "SELECT 1" + " UNION SELECT 1" * 1000,
    ],
    ids=["parentheses", "sums", "nots", "minuses", "unions"],
)
def test_what_would_break_a_parser(engine: Engine, sql: str) -> None:
    """One parser takes what the other refuses; neither ends the process, nor raises anything else."""
    assert verdict(engine, sql)


@each_engine
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT '" + "x" * MOST_CHARACTERS + "'", "longer than"),
        ("SELECT '\x00'", "a NUL character"),
        ("SELECT 1 -- \ud800", "no Unicode text"),
    ],
    ids=["length", "nul", "surrogates"],
)
def test_text_that_no_parser_is_given(engine: Engine, sql: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        DIALECTS[engine].judge(sql, DATABASE)


def test_unreadable_is_not_refused() -> None:
    for engine in Engine:
        for sql in ("SELEKT 1 FROM", "SELECT 1 /* unfinished", "SELECT 'unfinished"):
            with pytest.raises(Unreadable):
                DIALECTS[engine].judge(sql, DATABASE)
        with pytest.raises(Refused) as caught:
            DIALECTS[engine].judge("DROP TABLE a", DATABASE)
        assert not isinstance(caught.value, Unreadable)


def labelled() -> list[dict[str, Any]]:
    """Labelled statements of somebody else's, in REDTEAM_FILE: JSON lines with `dialect`, `label`, `class`, `sql`."""
    given = os.environ.get("REDTEAM_FILE")
    return [json.loads(line) for line in Path(given).read_text().splitlines()] if given else []


@pytest.mark.skipif(not os.environ.get("REDTEAM_FILE"), reason="REDTEAM_FILE names no file of labelled statements")
def test_labelled_statements_in_any_clothes() -> None:
    kinds = {"read": SqlClass.SELECT, "write": SqlClass.WRITE, "ddl": SqlClass.DDL_BATCH}
    wrong = []
    for line in labelled():
        engine = Engine(line["dialect"])
        for name, mutate in in_any_clothes(engine.value).items():
            found = verdict(engine, mutate(line["sql"]))
            expected = kinds[line["class"]] if line["label"] == "allow" else None
            if found != expected if expected else isinstance(found, SqlClass):
                wrong.append((line["id"], name, found, mutate(line["sql"])))
    assert wrong == []
