"""Which variables of the session a blueprint for MySQL may set."""

from dataclasses import dataclass

from app.dialects.mysql.scripts.reader import Lexeme, Reader
from app.dialects.mysql.scripts.refusals import ROLES, SERVER, TRANSACTION
from app.dialects.tokens import TokenKind

_SCOPES = frozenset({"global", "persist", "persist_only", "session", "local"})
_GLOBAL = frozenset({"global", "persist", "persist_only"})
_TRANSACTION = frozenset({"autocommit", "completion_type", "tx_isolation", "tx_read_only", "transaction"})
_TRANSACTION |= {"transaction_isolation", "transaction_read_only"}
# What mysqldump writes for replication, and what only administrators may set.
_SKIPPED = frozenset({"sql_log_bin", "gtid_purged", "gtid_next", "innodb_strict_mode", "pseudo_slave_mode"})
_REREADING = ("ansi", "no_backslash_escapes", "oracle", "mssql", "db2", "maxdb", "postgresql")
_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4"})
_CHARSETS = frozenset({"names", "character_set_client", "charset", "character"})


@dataclass(frozen=True, slots=True)
class Assignment:
    scope: str
    name: str
    value: list[Lexeme]
    start: int

    @property
    def text(self) -> str:
        return self.value[0].text.strip("'\"`").lower() if len(self.value) == 1 else ""


def refusal(reader: Reader) -> str | None:
    """Why a blueprint may not hold this SET; None when it may."""
    for assignment in assignments(reader):
        if reason := _refusal(assignment):
            return reason
    return None


def left_out(reader: Reader) -> str | None:
    """Why applying skips this SET; None when it doesn't. Comes before `refusal`."""
    found = assignments(reader)
    if found and all(item.name in _SKIPPED for item in found):
        return f"SET {found[0].name} is left out: it is the server's administrator's to set"
    return None


def surprise(reader: Reader) -> str | None:
    """What may surprise about this SET; None when nothing does."""
    for item in assignments(reader):
        if item.name in _CHARSETS and item.text and item.text not in _UTF8 and item.text not in ("default", "binary"):
            return (
                f"blueprints are sent as UTF-8, and this says {item.text}: other characters than ASCII will be garbled"
            )
    return None


def assignments(reader: Reader) -> list[Assignment]:
    """What a SET statement sets, from left to right; scopes and `@@` are taken off the names."""
    found = []
    items = [reader.item(index) for index in range(1, len(reader.tokens))]
    for part in _parts(items):
        scope, name, index = _target(part)
        found.append(Assignment(scope, name, part[index:], part[0].start))
    return found


def _parts(items: list[Lexeme]) -> list[list[Lexeme]]:
    parts: list[list[Lexeme]] = [[]]
    depth = 0
    for item in items:
        depth += {"(": 1, ")": -1}.get(item.word, 0)
        if item.word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(item)
    return [part for part in parts if part]


def _target(part: list[Lexeme]) -> tuple[str, str, int]:
    """Scope and name, and where the value begins. A user variable's name begins with `@`."""
    index = 0
    scope = ""
    if part[0].word == "@":
        system = len(part) > 1 and part[1].word == "@"
        if not system:
            return "", "@", min(3, len(part))
        index = 2
        if len(part) > index + 1 and part[index].word in _SCOPES and part[index + 1].word == ".":
            scope, index = part[index].word, index + 2
    elif part[0].word in _SCOPES and len(part) > 1:
        scope, index = part[0].word, 1
    name = part[index].name.lower() if index < len(part) and part[index].kind is not TokenKind.STRING else ""
    index += 1
    if name in ("default", "character") and index < len(part) and part[index].word in ("role", "set"):
        name, index = f"{name} {part[index].word}", index + 1
    if index < len(part) and part[index].word == ":":
        index += 1
    if index < len(part) and part[index].word == "=":
        index += 1
    return scope, name.removesuffix(" set"), index


def _refusal(assignment: Assignment) -> str | None:
    name = assignment.name
    if name in ("password", "role", "default role"):
        return ROLES.format(kind=f"SET {name.upper()}")
    if assignment.scope in _GLOBAL:
        return SERVER.format(kind=f"SET {assignment.scope.upper()}")
    if name in _TRANSACTION:
        return TRANSACTION.format(kind=f"SET {name.upper() if name == 'transaction' else name}")
    if name == "statement":
        return "SET STATEMENT … FOR hides the statement that it runs; write the statement itself"
    if name == "sql_mode":
        return _sql_mode(assignment)
    if name in _CHARSETS and assignment.text in ("gbk", "sjis", "big5", "cp932", "gb18030", "gb2312", "euckr", "ujis"):
        return f"blueprints are UTF-8; convert the script, and remove this line (it says {assignment.text})"
    return None


def _sql_mode(assignment: Assignment) -> str | None:
    text = "".join(item.text for item in assignment.value).lower()
    for mode in _REREADING:
        if mode in text:
            return f"sql_mode {mode.upper()} changes how the rest of the script is read; write it without this mode"
    return None
