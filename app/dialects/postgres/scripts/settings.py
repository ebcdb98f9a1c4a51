"""Which settings a blueprint may change, by SET or by set_config. What the text doesn't show is read from the
session after the statement."""

from typing import Any

from postgast import walk
from postgast.pg_query_pb2 import FuncCall, Node

from app.dialects.postgres.scripts import names
from app.dialects.postgres.scripts.refusals import ROLES, SERVER, TRANSACTION

_RESET, _RESET_ALL = 5, 6
_OFF = frozenset({"off", "false", "no", "0"})
_ON = frozenset({"on", "true", "yes", "1"})
_TIMEOUTS = frozenset(
    {
        "lock_timeout",
        "statement_timeout",
        "transaction_timeout",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
    }
)
_SUPERUSER = frozenset({"session_replication_role", "temp_file_limit", "log_statement", "zero_damaged_pages"})


def refusal(name: str, value: str | None) -> str | None:
    """Why a blueprint may not give the setting this value; None when it may. `value` is None for the default."""
    name = name.lower()
    if name in ("role", "session_authorization"):
        return ROLES.format(kind="SET ROLE" if name == "role" else "SET SESSION AUTHORIZATION")
    if name in _SUPERUSER:
        return SERVER.format(kind=f"SET {name}")
    if name.startswith(("transaction_", "default_transaction_")) and name != "transaction_timeout":
        return TRANSACTION.format(kind=f"SET {name}")
    if name == "standard_conforming_strings" and value is not None and value.lower() not in _ON:
        return "standard_conforming_strings = off changes how the rest of the script is read; write E'…' where needed"
    if name == "client_encoding" and value is not None and value.upper().replace("-", "") not in ("UTF8", "UNICODE"):
        return f"blueprints are UTF-8; convert the script, and remove this line (client_encoding is {value} here)"
    return None


def left_out(name: str, value: str | None) -> str | None:
    """Why applying skips the setting; None when it doesn't."""
    if name.lower() in _TIMEOUTS and value is not None and value.strip() in ("0", "0s", "0ms", "0min"):
        return f"{name} = 0 would wait without end, so it is left out"
    if name.lower() == "default_transaction_read_only" and value is not None and value.lower() in _OFF:
        return f"{name} = off is how a blueprint is applied anyway, so it is left out"
    return None


def set_statement(node: Any) -> tuple[str, str | None]:
    """The name and value of a SET or RESET; the name `ALL` for RESET ALL."""
    if node.kind == _RESET_ALL:
        return "ALL", None
    if node.name in ("TRANSACTION", "TRANSACTION SNAPSHOT", "SESSION CHARACTERISTICS"):
        return "transaction_mode", None
    return node.name, ", ".join(_text(argument) for argument in node.args) if node.args else None


def set_config_calls(node: Node) -> list[tuple[str, str | None]]:
    """Name and value of each set_config(…) in the statement; an empty name where it is computed."""
    calls = []
    for _, found in walk(node):
        if isinstance(found, FuncCall) and names.dotted(found.funcname).lower().split(".")[-1] == "set_config":
            arguments = [_text(argument) for argument in found.args[:2]]
            calls.append((arguments[0] if arguments else "", arguments[1] if len(arguments) > 1 else None))
    return calls


def _text(node: Node) -> str:
    """A constant as text; empty for anything that is computed."""
    while node.WhichOneof("node") == "type_cast":
        node = node.type_cast.arg
    if node.WhichOneof("node") != "a_const":
        return ""
    match node.a_const.WhichOneof("val"):
        case "sval":
            return str(node.a_const.sval.sval)
        case "ival":
            return str(node.a_const.ival.ival)
        case "fval":
            return str(node.a_const.fval.fval)
        case "boolval":
            return "true" if node.a_const.boolval.boolval else "false"
        case _:
            return ""
