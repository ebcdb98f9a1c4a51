"""The same statement in other clothes: whatever a statement is, it stays that when blanks, comments, case or quoting
change."""

import re
from collections.abc import Callable, Iterator

from app.dialects.word_lists import words

# Quoted text and comments stay as they are.
_PARTS = re.compile(
    r"""(?P<kept>'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`[^`]*`|\$\$.*?\$\$|/\*.*?\*/|--[^\n]*|\#[^\n]*)
    |(?P<blank>\s+)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = words(
    """
    select from where and or not in join left on group by having order limit union all with recursive as insert into
    values update set delete create table index view alter add column drop truncate grant call exists distinct case
    when then else end between like is null using primary key
    show full tables columns fields index indexes keys describe desc explain analyze
    """
)
_NAMES = {"customers", "products", "orders", "items", "log", "total", "status", "pg_read_file", "pg_authid", "user"}


def mutations(dialect: str) -> dict[str, Callable[[str], str]]:
    """By name. `dialect` is `postgres` or `mysql`."""
    blanks = {
        "newlines": "\n",
        "tabs": " \t\r\n ",
        "comments": " /* x */ ",
        "quote in a comment": " /* it's \" ` ; DROP */ ",
        "dashes": " -- x' ; \n",
    }
    quote = '"' if dialect == "postgres" else "`"
    blanks |= {"nested": " /* a /* b */ c */ "} if dialect == "postgres" else {"hash": " # x' ; \n"}
    made: dict[str, Callable[[str], str]] = {
        name: lambda sql, blank=blank: _rewritten(sql, blank=lambda _: blank)  # type: ignore[misc]
        for name, blank in blanks.items()
    }
    made["upper"] = lambda sql: _rewritten(sql, word=_keyword(str.upper))
    made["lower"] = lambda sql: _rewritten(sql, word=_keyword(str.lower))
    made["mixed"] = lambda sql: _rewritten(sql, word=_keyword(lambda word: word[:1].lower() + word[1:].upper()))
    made["quoted"] = lambda sql: _rewritten(sql, word=lambda word: f"{quote}{word}{quote}" if word in _NAMES else word)
    made["semicolon"] = lambda sql: sql.rstrip("; ") + " ;"
    made["around"] = lambda sql: f"\n\t /* first */ {sql}\n"
    if dialect == "postgres":
        made["escaped names"] = lambda sql: _rewritten(
            sql, word=lambda word: 'U&"' + "".join(f"\\{ord(c):04X}" for c in word) + '"' if word in _NAMES else word
        )
    return made


def in_any_clothes(dialect: str) -> dict[str, Callable[[str], str]]:
    """The mutations, and the statement as it is."""
    return {"as it is": str, **mutations(dialect)}


def _keyword(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda word: change(word) if word.lower() in _KEYWORDS else word


def _rewritten(sql: str, *, word: Callable[[str], str] = str, blank: Callable[[str], str] = str) -> str:
    return "".join(_pieces(sql, word, blank))


def _pieces(sql: str, word: Callable[[str], str], blank: Callable[[str], str]) -> Iterator[str]:
    for match in _PARTS.finditer(sql):
        if match["word"]:
            yield word(match[0])
        elif match["blank"]:
            yield blank(match[0])
        else:
            yield match[0]
