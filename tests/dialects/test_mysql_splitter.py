"""The MySQL splitter: nothing is lost, DELIMITER and routines are understood, and servers split alike."""

import random
import warnings
from collections.abc import AsyncIterator
from typing import Any

import aiomysql
import pymysql
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysql.constants import CLIENT

from app.dialects.errors import SqlError
from app.dialects.mysql.lexer import Lexer, tokens
from app.dialects.mysql.splitter import SplitStatement, split
from app.dialects.tokens import TokenKind
from tests.servers import RunningServer

PIECES = (
    *("'a'", "'it''s'", "'b\\'c'", "'d\\\\'", '"e"', '"f;g"', '"h""i"', "';'", "'-- x'", "'/* y'", "'*/'", "'#'"),
    *("1", " + 1", "--1", "-- ; x\n", "--\t;\n", "# ; '\n", "/* ; */", "/* ' */", "/*!1,2*/", "/*!50000 , 3 */"),
    *(
        "/*!99999 ; */",
        "/*M! , 4 */",
        ",",
        ";",
        " ",
        "\n",
        "SELECT ",
        "SELECT 1;",
        " AS `a;b`",
        " AS `c``d`",
        "x'41'",
        "_utf8mb4'z'",
    ),
    *(
        "N'n'",
        "@v",
        " 'adjacent'",
        "/**/",
        "/*+ ; */",
        "--",
        "#",
        "'",
        '"',
        "`",
        "\\",
        "/*",
        "*/",
        "\r\n",
        "$$",
        "(",
        ")",
        "é",
    ),
)
SCRIPTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@settings(max_examples=100)
@given(SCRIPTS)
def test_no_text_is_lost(script: str) -> None:
    at = 0
    try:
        for token in tokens(script):
            assert token.start >= at
            assert not script[at : token.start].strip()
            at = token.end
    except SqlError:
        return
    assert not script[at:].strip()


@settings(max_examples=100)
@given(SCRIPTS)
def test_between_statements_are_delimiters_blanks_and_comments_only(script: str) -> None:
    result = split(script)
    at = 0
    for statement in result.statements:
        assert statement.start >= at
        assert statement.start < statement.end
        at = statement.end
    if result.error is None:
        marks = sum(len(statement.tokens) for statement in result.statements)
        assert marks <= sum(1 for _ in tokens(script))


def test_delimiters() -> None:
    script = (
        "DELIMITER $$\nSELECT 1$$ SELECT a$b$$\n"
        "delimiter //\nSELECT '//' // SELECT 1; SELECT 2//\n"
        "DELIMITER ;\nSELECT 3;"
    )

    assert _texts(script) == ["SELECT 1", "SELECT a$b", "SELECT '//'", "SELECT 1", "SELECT 2", "SELECT 3"]


def test_a_delimiter_is_found_before_what_it_would_begin() -> None:
    assert _texts("DELIMITER '\nSELECT 1'SELECT 2'") == ["SELECT 1", "SELECT 2"]
    assert _texts("DELIMITER #\nSELECT 1# SELECT 2#SELECT 3") == ["SELECT 1", "SELECT 2", "SELECT 3"]
    assert _texts("DELIMITER end\nSELECT 1endSELECT b_end_cend") == ["SELECT 1", "SELECT b_", "_c"]


def test_a_word_that_delimiters_cut_is_read_once() -> None:
    """A word's end is found by a regular expression, whose work nobody counts: found again at each cut, it takes longer
    than a test may."""
    lexer = Lexer("ba" * 600_000, delimiter="a")
    assert sum(1 for _ in iter(lexer.next, None)) == 1_200_000


@pytest.mark.parametrize("script", ["DELIMITER\nSELECT 1", "DELIMITER \\\nSELECT 1"])
def test_bad_delimiters(script: str) -> None:
    error = split(script).error

    assert error is not None
    assert error.offset == 0


def test_the_order_to_the_client_that_mariadb_dump_begins_with() -> None:
    assert _texts("/*M!999999\\- enable the sandbox mode */ \nSELECT 1; SELECT 2") == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize("script", ["SELECT 1--", "SELECT 1 -- "])
def test_dashes_at_the_end_are_a_comment(script: str) -> None:
    assert _texts(script) == ["SELECT 1"]


@pytest.mark.parametrize("script", ["SELECT 1--;", "SELECT 1--#", "SELECT 1--/* */", "SELECT 1; SELECT 1--; SELECT 2"])
def test_dashes_that_would_become_a_comment(script: str) -> None:
    """Cut off right behind them, the statement would be another one than in the script."""
    error = split(script).error

    assert error is not None
    assert error.offset == script.index("--")


def test_a_routine_ends_with_its_block() -> None:
    body = "BEGIN IF a THEN BEGIN END; END IF; CASE a WHEN 1 THEN SELECT IF(1, 2, 3); END CASE; END"
    trigger = "CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET @a = 1"
    script = f"CREATE PROCEDURE p(a INT) {body}; SELECT 1; {trigger}; SELECT 2"

    assert _texts(script) == [
        f"CREATE PROCEDURE p(a INT) {body}",
        "SELECT 1",
        trigger,
        "SELECT 2",
    ]


def _texts(script: str) -> list[str]:
    result = split(script)
    assert result.error is None
    return [script[statement.start : statement.end] for statement in result.statements]


@pytest.fixture(params=["mysql_server", "oracle_mysql_server"])
def server(request: pytest.FixtureRequest) -> RunningServer:
    running: RunningServer = request.getfixturevalue(request.param)
    return running


@pytest_asyncio.fixture
async def connection(server: RunningServer) -> AsyncIterator[Any]:
    made = await aiomysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        charset="utf8mb4",
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    yield made
    made.close()


async def _results(connection: Any, script: str) -> list[Any]:
    """Rows of each statement; the last entry is the error that ended it, if one did."""
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        async with connection.cursor() as cursor:
            try:
                await cursor.execute(script)
                found.append(await cursor.fetchall())
                while await cursor.nextset():
                    found.append(await cursor.fetchall())
            except pymysql.MySQLError as error:
                found.append(error.args[0])
    return found


async def _compare(connection: Any, seed: int, count: int) -> None:
    """The server splits the whole script; we split it and send the pieces."""
    dice = random.Random(seed)
    compared = 0
    for _ in range(count):
        script = "SELECT 1" + "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 9)))
        result = split(script)
        if result.error is not None or not all(_is_whole(statement) for statement in result.statements):
            continue  # refused, whatever a server makes of it
        theirs = await _results(connection, script)
        mine: list[Any] = []
        for statement in result.statements:
            mine += await _results(connection, script[statement.start : statement.end])
            if isinstance(mine[-1], int):
                break
        # Comments alone are a statement without rows to a server, and none to us.
        assert [rows for rows in mine if rows] == [rows for rows in theirs if rows and rows != 1065], script
        compared += not any(isinstance(rows, int) for rows in theirs)
    assert compared > count / 20


def _is_whole(statement: SplitStatement) -> bool:
    opened = sum(token.kind is TokenKind.OPEN for token in statement.tokens)
    return opened == sum(token.kind is TokenKind.CLOSE for token in statement.tokens)


async def test_servers_split_alike(connection: Any) -> None:
    await _compare(connection, seed=1, count=200)


@pytest.mark.soak
async def test_servers_split_thousands_alike(connection: Any) -> None:
    await _compare(connection, seed=2, count=20_000)
