"""What is code in a PostgreSQL script, and what is literal, comment or quoted name.

PostgreSQL's own scanner reads the code. This one goes before it: it finds what that scanner must not see (lines for
psql) or would be brought down by (deeply nested comments).
"""

import re
from collections.abc import Iterator

from app.dialects.errors import SqlError
from app.dialects.tokens import Token, TokenKind

MAX_COMMENT_DEPTH = 200


# All repetitions are possessive: a script can't make them try again.
_CONTINUED = r"(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*+[\n\r])*+"
_ESCAPED = r"'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+'"
# A literal that goes on after a line break keeps the escapes of its first part.
_TOKENS = re.compile(
    rf"""
      (?P<line_comment>--[^\n\r]*)
    | (?P<block_comment>/\*)
    | (?P<escaped>[eE]{_ESCAPED}(?:{_CONTINUED}{_ESCAPED})*+)
    | (?P<string>(?:[uU]&|[bBxX])?'[^']*+(?:''[^']*+)*+')
    | (?P<name>(?:[uU]&)?"[^"]*+(?:""[^"]*+)*+")
    | (?P<dollar>\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$)
    | (?P<open>[eEbBxX]'|[uU]&['"]|['"])
    | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    | (?P<number>\$[0-9]+|0[xXoObB][0-9A-Fa-f_]+|[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<symbol>[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "line_comment": TokenKind.COMMENT,
    "escaped": TokenKind.STRING,
    "string": TokenKind.STRING,
    "name": TokenKind.QUOTED_NAME,
    "word": TokenKind.WORD,
    "number": TokenKind.NUMBER,
    "symbol": TokenKind.SYMBOL,
}
_NESTING = re.compile(r"/\*|\*/")


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens from `start` on, without white space. Raises `SqlError` at what is never closed."""
    at = start
    while match := _TOKENS.search(text, at):
        group = match.lastgroup
        begin, at = match.span()
        if group == "block_comment":
            at = _end_of_comment(text, begin)
            yield Token(TokenKind.COMMENT, begin, at)
        elif group == "dollar":
            at = text.find(match.group(), at)
            if at == -1:
                raise SqlError(begin, f"the dollar quote {match.group()} is never closed")
            at += len(match.group())
            yield Token(TokenKind.DOLLAR, begin, at)
        elif group == "open":
            what = "string" if match.group().endswith("'") else "quoted name"
            raise SqlError(begin, f"the {what} that begins here is never closed")
        else:
            assert group is not None
            yield Token(_KINDS[group], begin, at)


def _end_of_comment(text: str, begin: int) -> int:
    depth = 0
    for match in _NESTING.finditer(text, begin):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
        if depth > MAX_COMMENT_DEPTH:
            raise SqlError(match.start(), f"comments are nested more than {MAX_COMMENT_DEPTH} deep")
    raise SqlError(begin, "the comment that begins here is never closed")
