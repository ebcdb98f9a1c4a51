"""The lexer before PostgreSQL's scanner: both cut scripts alike, however quotes, comments and dollars are mixed."""

import postgast
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.dialects.errors import SqlError
from app.dialects.positions import CodePoints
from app.dialects.postgres.lexer import MAX_COMMENT_DEPTH, tokens
from app.dialects.tokens import TokenKind
from tests.support.together import together

_COMMENTS = ("SQL_COMMENT", "C_COMMENT")
PIECES = st.sampled_from(
    [
        *(
            "'",
            "''",
            '"',
            '""',
            "$$",
            "$a$",
            "$b$",
            "$1",
            "$",
            ";",
            ",",
            "\n",
            " ",
            "\t",
            "--",
            "-",
            "/*",
            "*/",
            "/",
            "*",
        ),
        *(
            "\\",
            "\\'",
            "E'",
            "e'",
            "U&'",
            'U&"',
            "N'",
            "B'",
            "x'",
            "a",
            "tag",
            "E",
            "1",
            "1.5",
            ".",
            "..",
            "é",
            "(",
            ")",
        ),
        *("::", "->>", "@", "select", "begin", "end", "{{x}}", "\r\n", "1e5", "0x1F", "a$b$", "$$;$$", "'a'", '"b"'),
    ]
)
SCRIPTS = st.lists(PIECES, max_size=25).map("".join)


def _literals(script: str) -> list[tuple[str, int, int]]:
    """Literals, quoted names and comments as PostgreSQL's own scanner finds them."""
    names = {value.number: value.name for value in postgast.pg_query_pb2.Token.DESCRIPTOR.values}
    points = CodePoints(script)
    found = []
    for token in postgast.scan(script).tokens:
        start, end = points.offset(token.start), points.offset(token.end)
        name = names.get(token.token, "")
        if name in _COMMENTS:
            found.append(("comment", start, end))
        elif name in ("SCONST", "USCONST", "BCONST", "XCONST"):
            found.append(("string", start, end))
        elif script[start] == '"' or script[start : start + 3].upper() == 'U&"':
            found.append(("name", start, end))
    return found


def _mine(script: str) -> list[tuple[str, int, int]]:
    kinds = {
        TokenKind.COMMENT: "comment",
        TokenKind.STRING: "string",
        TokenKind.DOLLAR: "string",
        TokenKind.QUOTED_NAME: "name",
    }
    return [(kinds[token.kind], token.start, token.end) for token in tokens(script) if token.kind in kinds]


def _agree(script: str) -> None:
    try:
        theirs = _literals(script)
    except postgast.PgQueryError:
        return  # a script that PostgreSQL can't scan is refused by PostgreSQL's own parser
    # A literal that goes on after a line break is one token there, and several here without escapes.
    mine = _mine(script)
    covered = {offset for _, start, end in mine for offset in range(start, end)}
    expected = {offset for _, start, end in theirs for offset in range(start, end)}
    between = expected - covered
    assert covered <= expected, script
    assert all(script[offset].isspace() for offset in between if not _in_comment(script, offset, theirs)), script


def _in_comment(script: str, offset: int, theirs: list[tuple[str, int, int]]) -> bool:
    return any(kind == "comment" and start <= offset < end for kind, start, end in theirs)


@settings(max_examples=300)
@given(SCRIPTS)
def test_literals_and_comments_are_where_postgresql_finds_them(script: str) -> None:
    _agree(script)


@pytest.mark.soak
@settings(max_examples=30_000)
@given(SCRIPTS)
def test_many_literals_and_comments_are_where_postgresql_finds_them(script: str) -> None:
    _agree(script)


@settings(max_examples=300)
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


@together(
    ("script", "offset"),
    [("a 'b", 2), ('a "b', 2), ("a $x$ b $y$", 2), ("a /* b /* c */", 2), ("a E'b\\'", 2)],
)
def test_what_is_never_closed_is_an_error_where_it_begins(script: str, offset: int) -> None:
    with pytest.raises(SqlError) as caught:
        list(tokens(script))

    assert caught.value.offset == offset


def test_comments_nest_to_a_limit() -> None:
    deep = "/*" * MAX_COMMENT_DEPTH + "*/" * MAX_COMMENT_DEPTH
    assert [token.kind for token in tokens(deep)] == [TokenKind.COMMENT]
    with pytest.raises(SqlError, match="nested"):
        list(tokens("/*" * 100_000))
