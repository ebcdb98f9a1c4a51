"""MySQL's text as the server splits it: statements apart, comments gone. What is left is judged and executed, so that
no comment means one thing to a parser and another to the server."""

import re

from app.dialects.verdict import Refused, Unreadable

# Quoted text first: nothing in it is a comment or the end of a statement. `--` begins a comment only before a blank or
# a control character; `--1` is arithmetic.
_TOKEN = re.compile(
    r"""
    (?P<quoted>'(?:[^'\\]|''|\\.)*' | "(?:[^"\\]|""|\\.)*" | `(?:[^`]|``)*`)
  | (?P<executed>/\*M?!)
  | (?P<hint>/\*\+)
  | (?P<comment>/\*.*?\*/ | \#[^\n]* | --(?=[\s\x00-\x1f]|\Z)[^\n]*)
  | (?P<end>;)
  | (?P<broken>['"`] | /\*)
  | (?P<other>[^'"`/#;-]+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)
# A quotation to MySQL 9; to a parser names, before which a quotation mark begins another.
_DOLLARS = re.compile(r"(?<![\w$])\$\w*\$")


def statements(sql: str) -> list[str]:
    """Each without comments and without its semicolon; empty ones are left out. Raises `Refused` for comments that
    the server executes or obeys."""
    found: list[str] = []
    current: list[str] = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind == "executed":
            raise Refused("The server would execute what stands in this comment.")
        if kind == "hint":
            raise Refused("Optimizer hints are not allowed.")
        if kind == "broken":
            raise Unreadable("A quotation or a comment has no end.")
        if kind == "other" and _DOLLARS.search(match[0]):
            raise Refused("Dollar signs may not quote.")
        if kind == "end":
            found.append("".join(current).strip())
            current = []
        else:
            current.append(" " if kind == "comment" else match[0])
    found.append("".join(current).strip())
    return [statement for statement in found if statement]
