"""What every dialect does alike, whatever its engine: a new one joins by being in the registry."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.blueprints.reading import likelier
from app.contracts.base import Engine
from app.dialects.analysis import MAX_FAULTS, MAX_STATEMENTS
from app.dialects.base import Dialect
from app.dialects.errors import SqlError
from app.dialects.positions import Lines
from app.dialects.registry import DIALECTS
from app.dialects.tokens import TokenKind
from app.dialects.verdict import MOST_CHARACTERS, Refused, SqlClass, Unreadable
from tests.engines.harness import EngineHost, RefusedError, kind_of, refusal, session_of, tenants

DATABASE = "tenantsown"
SCRIPT = """-- ä; a comment
CREATE TABLE pets (id integer PRIMARY KEY, name varchar(20) DEFAULT 'a;b');
/* ü; */ INSERT INTO pets VALUES (1, 'ö;''x'); SELECT name
  FROM pets;;
UPDATE pets SET name = 'é' WHERE id = 1"""
STATEMENTS = [
    "CREATE TABLE pets (id integer PRIMARY KEY, name varchar(20) DEFAULT 'a;b')",
    "INSERT INTO pets VALUES (1, 'ö;''x')",
    "SELECT name\n  FROM pets",
    "UPDATE pets SET name = 'é' WHERE id = 1",
]
KINDS = ["CREATE TABLE", "INSERT", "SELECT", "UPDATE"]
OWN = {
    Engine.POSTGRES: "CREATE TABLE public.t (id bigserial, data jsonb); CREATE EXTENSION citext;",
    Engine.MYSQL: "CREATE TABLE `t` (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB;",
}
PIECES = st.sampled_from(
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
            "-",
            "#",
            "/*",
            "*/",
            "/*!",
            "/*+",
            ";",
            "$$",
            "$a$",
            "{{",
            "}}",
        ),
        *(
            "\n",
            "\r\n",
            "\t",
            " ",
            "a",
            "E'",
            "U&'",
            "N'",
            "_utf8'",
            "x'41'",
            "0x27",
            "1",
            "1.5e3",
            ".",
            "%",
            "%s",
            ":x",
        ),
        *("?", "@", "::", "(", ")", ",", "é", "\u2019", "\uff05", "\U0001f600", "\xa0", "\x7f", "\x1a", "SELECT 1;"),
    ]
)
TEXTS = st.lists(PIECES, max_size=20).map("".join)
NASTY = [
    *("", "'", "''", "\\", "\\'", "it's", 'a"b', "a`b", "; DROP TABLE x; --", "/* a", "*/", "-- a", "# a", "$$", "$a$"),
    *(
        "a\nb",
        "a\r\nb",
        "\t",
        "\\n",
        "\\0",
        "\\\\'",
        "%s",
        "%(a)s",
        "?",
        ":a",
        "{{a}}",
        "é",
        "\U0001f600",
        "\u2019",
        "\x7f",
    ),
]
NAMES = [
    *("a b", "it's", 'a"b', "a`b", "a;b", "a--b", "a/*b", "a#b", "$$", "a\\b", "select", "%s", "{{a}}", "é", "a.b"),
]
each_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.engine.value)


def dialect_of(host: EngineHost) -> Dialect:
    return DIALECTS[Engine(kind_of(host))]


@each_dialect
@settings(max_examples=100)
@given(text=TEXTS)
def test_tokens_cover_the_text(dialect: Dialect, text: str) -> None:
    at = 0
    try:
        for token in dialect.tokens(text):
            assert at <= token.start < token.end <= len(text)
            assert not text[at : token.start].strip()
            at = token.end
    except SqlError:
        return  # what comes before it is covered
    assert not text[at:].strip()


@each_dialect
def test_tokens_tell_code_from_what_is_quoted(dialect: Dialect) -> None:
    text = f"SELECT {dialect.quote_name('b c')}, 'd e' /* f g */ + 1"
    quoted = {text[t.start : t.end]: t.kind for t in dialect.tokens(text) if not t.is_code}
    assert quoted == {
        dialect.quote_name("b c"): TokenKind.QUOTED_NAME,
        "'d e'": TokenKind.STRING,
        "/* f g */": TokenKind.COMMENT,
    }


@each_dialect
def test_a_script_is_split_where_its_statements_are(dialect: Dialect) -> None:
    assert [SCRIPT[start:end] for start, end in dialect.split(SCRIPT)] == STATEMENTS


@each_dialect
def test_an_analysis_has_the_same_statements(dialect: Dialect) -> None:
    analysis = dialect.analyze(SCRIPT)
    assert analysis.valid
    assert analysis.engine is dialect.engine
    assert [SCRIPT[found.start : found.end] for found in analysis.statements] == STATEMENTS
    assert [found.kind for found in analysis.statements] == KINDS
    assert [found.object for found in analysis.statements] == ["pets", "pets", None, "pets"]
    assert [found.makes for found in analysis.statements] == [True, False, False, False]


@each_dialect
@pytest.mark.parametrize(
    ("broken", "column"),
    [("SELECT 'ä", 8), ("/* ä", 1), ("SELECT * FORM a", 10), ("CREATE TABLE a (b int,)", 23), ("SELEC 1", 1)],
)
def test_broken_text_is_refused_where_it_is_broken(dialect: Dialect, broken: str, column: int) -> None:
    script = f"SELECT 'é';\n{broken}"
    analysis = dialect.analyze(script)
    lines = Lines(script)
    assert analysis.faults
    assert not analysis.forbidden
    places = [(lines.line(fault.offset), lines.column(fault.offset)) for fault in analysis.faults]
    # sqlglot and PostgreSQL name the word that can't be there, which may be the one after the wrong one.
    assert places[0][0] == 2
    assert column <= places[0][1] <= column + len("FORM ")


@each_dialect
def test_an_analysis_that_is_not_thorough_ends_at_the_first_fault(dialect: Dialect) -> None:
    script = "CREATE ROLE a;\n" * (MAX_FAULTS + 10)
    assert len(dialect.analyze(script, thorough=False).faults) == 1
    assert len(dialect.analyze(script).faults) > 1


@each_dialect
@pytest.mark.parametrize("sql", ["COMMIT", "ROLLBACK", "START TRANSACTION", "CREATE DATABASE a", "CREATE ROLE a"])
def test_what_no_script_may_hold(dialect: Dialect, sql: str) -> None:
    assert dialect.analyze(f"SELECT 1;\n{sql}").forbidden


@each_dialect
def test_a_script_has_so_many_statements(dialect: Dialect) -> None:
    script = "SELECT 1;\n" * (MAX_STATEMENTS + 1)
    [fault] = dialect.analyze(script).faults
    assert fault.forbidden
    assert Lines(script).line(fault.offset) == MAX_STATEMENTS + 1


@each_dialect
def test_signs_are_of_scripts_for_this_engine(dialect: Dialect) -> None:
    assert likelier(OWN[dialect.engine]) is dialect.engine
    for engine, other in OWN.items():
        assert dialect.analyze(other).valid == (engine is dialect.engine)


@each_dialect
@settings(max_examples=100)
@given(text=TEXTS)
def test_a_quoted_text_is_one_token(dialect: Dialect, text: str) -> None:
    quoted = dialect.quote(text)
    assert list(dialect.tokens(quoted)) == [(TokenKind.STRING, 0, len(quoted))]


@each_dialect
@settings(max_examples=100)
@given(name=TEXTS)
def test_a_quoted_name_is_one_token(dialect: Dialect, name: str) -> None:
    quoted = dialect.quote_name(name)
    assert list(dialect.tokens(quoted)) == [(TokenKind.QUOTED_NAME, 0, len(quoted))]


@each_dialect
@pytest.mark.parametrize("value", [None, True, False, 0, -1, 2**63 - 1, -(2**63), 1.5, -1e-7, 1e300, -0.0])
def test_a_quoted_value_makes_no_comment(dialect: Dialect, value: float | None) -> None:
    text = f"SELECT 1 -{dialect.quote(value)}"
    assert all(token.kind is not TokenKind.COMMENT for token in dialect.tokens(text))


async def test_quoted_texts_are_what_the_server_reads(host: EngineHost) -> None:
    dialect = dialect_of(host)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for text in NASTY:
            [(found,)] = await session.run(f"SELECT {dialect.quote(text)}")
            assert found == text


async def test_quoted_names_are_what_the_server_reads(host: EngineHost) -> None:
    dialect = dialect_of(host)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for name in NAMES:
            await session.run(f"CREATE TABLE {dialect.quote_name(name)} (a int)")
        rows = await session.run("SELECT table_name FROM information_schema.tables WHERE table_name <> 'none'")
        assert set(NAMES) <= {row[0] for row in rows}


async def test_quoted_values_are_what_the_server_reads(host: EngineHost) -> None:
    dialect = dialect_of(host)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        assert await session.run(f"SELECT {dialect.quote(None)}") == [(None,)]
        for value in (0, 7, -7, 2**63 - 1, True):
            assert await session.run(f"SELECT {dialect.quote(value)}") == [(value,)]
        assert await session.run(f"SELECT 8 -{dialect.quote(-7)}") == [(15,)]


async def test_errors_about_names_and_syntax_have_phrases(host: EngineHost) -> None:
    dialect = dialect_of(host)
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        await session.run("CREATE TABLE a (b int)")
        for wrong, phrase in {
            "SELEC 1": "a syntax error",
            "SELECT c FROM a": "a column that doesn't exist",
            "SELECT * FROM c": "a table that doesn't exist",
            "SELECT b FROM a JOIN a AS c ON a.b = c.b": "an ambiguous column",
        }.items():
            with pytest.raises(RefusedError) as caught:
                await session.run(wrong)
            assert dialect.error_phrases[caught.value.code] == phrase
        assert await refusal(session, "SELECT b FROM a") is None


@each_dialect
@pytest.mark.parametrize(
    ("sql", "sql_class"),
    [
        ("SELECT id, name FROM pets WHERE id = 1", SqlClass.SELECT),
        ("SELECT count(*) FROM pets -- all of them", SqlClass.SELECT),
        ("EXPLAIN SELECT 1", SqlClass.SELECT),
        ("INSERT INTO pets (id) VALUES (1)", SqlClass.WRITE),
        ("UPDATE pets SET name = 'a' WHERE id = 1", SqlClass.WRITE),
        ("DELETE FROM pets WHERE id = 1", SqlClass.WRITE),
        ("CREATE TABLE a (b int); CREATE INDEX i ON a (b)", SqlClass.DDL_BATCH),
    ],
)
def test_what_a_question_may_become(dialect: Dialect, sql: str, sql_class: SqlClass) -> None:
    allowed = dialect.judge(sql, DATABASE)
    assert allowed.sql_class is sql_class
    assert all("--" not in text and not text.endswith(";") for text in allowed.statements)


@each_dialect
@pytest.mark.parametrize(
    "sql",
    [
        *("DROP TABLE pets", "TRUNCATE TABLE pets", "DELETE FROM pets", "UPDATE pets SET id = 1", "GRANT a TO b"),
        *("COMMIT", "SET ROLE a", "CALL p()", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE pets", "CREATE DATABASE a"),
        *("SELECT * FROM pets FOR UPDATE", "SELECT sleep(1)", "SELECT pg_sleep(1)", "SELECT my_own_function()"),
        *("SELECT * FROM information_schema.processlist", "ALTER TABLE pets DROP COLUMN id"),
        *("EXPLAIN DELETE FROM pets WHERE id = 1", "CREATE VIEW v AS SELECT sleep(1), pg_sleep(1)", "LOCK TABLE pets"),
        "SELECT " + "+" * 12_000 + "1",
        f"SELECT '{'x' * MOST_CHARACTERS}'",
        "SELECT '\0'",
        "SELECT '\ud800'",
    ],
)
def test_what_a_question_never_becomes(dialect: Dialect, sql: str) -> None:
    with pytest.raises(Refused):
        dialect.judge(sql, DATABASE)


@each_dialect
@pytest.mark.parametrize("sql", ["", " ", "-- nothing", ";", "SELEKT 1 FROM", "SELECT 'unfinished", "SELECT 1 /* and"])
def test_what_nobody_can_read_is_unreadable(dialect: Dialect, sql: str) -> None:
    with pytest.raises(Unreadable):
        dialect.judge(sql, DATABASE)


@each_dialect
def test_a_batch_gives_what_its_work_gives(dialect: Dialect) -> None:
    def nested() -> tuple[bool, int]:
        return dialect.batch(lambda: dialect.analyze(SCRIPT).valid), threading.get_ident()

    valid, _ = dialect.batch(nested)
    assert valid
    with pytest.raises(ZeroDivisionError):
        dialect.batch(lambda: 1 // 0)
