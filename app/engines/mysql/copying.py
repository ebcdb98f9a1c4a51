"""Copying a tenant's schema without data, as the tenants themselves: no privileged session ever runs what a tenant
wrote.

Names of databases and accounts are random and of equal length, so replacing one by the other in the server's output
changes nothing else, but does change definers and qualified names.
"""

import re
from collections.abc import Iterable, Sequence

import pymysql

from app.engines.errors import EngineError
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.quoting import quote_name
from app.engines.naming import HELPER_SEPARATOR

_TABLES = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1"
_ROUTINES = (
    "SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = DATABASE() ORDER BY 1"
)
_TRIGGERS = (
    "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE() "
    "ORDER BY event_object_table, action_timing, event_manipulation, action_order"
)
_CHARACTERS = (
    "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata "
    "WHERE schema_name = DATABASE()"
)
_SHOWN_AT = {"TABLE": 1, "VIEW": 1, "SEQUENCE": 1, "PROCEDURE": 2, "FUNCTION": 2, "TRIGGER": 2}
"""The column of SHOW CREATE that has the statement."""
_WITH_MODE = {"PROCEDURE", "FUNCTION", "TRIGGER"}
_VIEW_KINDS = {"VIEW", "SYSTEM VIEW"}
_MOST_NAMED = 5
"""How many of the objects that couldn't be copied are named. A tenant may have thousands, each with the server's
message."""


async def copy_schema(source: MySQLConnection, target: MySQLConnection, old: str, new: str) -> list[str]:
    """Returns a sentence for each of the first objects that couldn't be copied, and one that counts the others.
    `source` and `target` are sessions of the tenants `old` and `new`."""
    [(characters, collation)] = await source.run(_CHARACTERS)
    await target.run(f"ALTER DATABASE CHARACTER SET {characters} COLLATE {collation}")
    await target.run("SET SESSION foreign_key_checks = 0, unique_checks = 0")
    tables = await source.run(_TABLES)
    routines = [(kind, name) for name, kind in await source.run(_ROUTINES) if kind in _SHOWN_AT]
    sequences = [("SEQUENCE", name) for name, kind in tables if kind == "SEQUENCE"]
    base = [("TABLE", name) for name, kind in tables if kind not in _VIEW_KINDS and kind != "SEQUENCE"]
    views = [("VIEW", name) for name, kind in tables if kind in _VIEW_KINDS]
    triggers = [("TRIGGER", name) for (name,) in await source.run(_TRIGGERS)]
    left, count = list[str](), 0
    for group in (sequences, routines, base, views, triggers):
        faults, more = await _copy(source, target, group, old, new)
        left, count = [*left, *faults][:_MOST_NAMED], count + more
    return left if count == len(left) else [*left, f"and {count - len(left)} more"]


async def _copy(
    source: MySQLConnection, target: MySQLConnection, wanted: Iterable[tuple[str, str]], old: str, new: str
) -> tuple[list[str], int]:
    """Copies in rounds, because a view may need another one that comes later. Stops when a round copies nothing.
    Returns the first faults, and how many there are."""
    pending = list(wanted)
    faults: list[str] = []
    while pending:
        waiting: list[tuple[str, str]] = []
        faults = []
        for kind, name in pending:
            fault = await _copy_one(source, target, kind, name, old, new)
            if fault is not None:
                waiting.append((kind, name))
                if len(faults) < _MOST_NAMED:
                    faults.append(f"{kind.lower()} {name}: {fault}")
        if len(waiting) == len(pending):
            break
        pending = waiting
    return faults, len(pending)


async def _copy_one(
    source: MySQLConnection, target: MySQLConnection, kind: str, name: str, old: str, new: str
) -> str | None:
    try:
        row: Sequence[str | None] = (await source.run(f"SHOW CREATE {kind} {quote_name(name)}"))[0]
        statement = row[_SHOWN_AT[kind]]
        if statement is None:
            return "its text is not shown to its owner"
        # A table may have defaults that only a lenient mode accepts.
        mode = (row[1] or "").replace("'", "") if kind in _WITH_MODE else ""
        await target.run(f"SET SESSION sql_mode = '{mode}'")
        await target.run(_renamed(statement, old, new))
    except pymysql.MySQLError as error:
        if not target.usable or not source.usable:
            raise EngineError("the session was lost while the schema was copied") from error
        return str(error.args[1]) if len(error.args) > 1 else str(error)
    return None


def _renamed(statement: str, old: str, new: str) -> str:
    """The statement with the new tenant's name. What a user of the old tenant has defined is defined by the new tenant
    itself, which has no users."""
    users = re.compile(f"`{old}{HELPER_SEPARATOR}[a-z0-9]+`@`%`")
    return users.sub(f"`{old}`@`%`", statement).replace(old, new)
