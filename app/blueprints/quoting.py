"""Values written as SQL, each by its type and for one engine. What comes out is a single token, whatever went in."""

from app.blueprints.variables import Value, VariableType
from app.contracts.base import Engine


def quote(value: Value, kind: VariableType, dialect: Engine) -> str:
    """`value` fits its definition already. None is NULL. A negative number brings a blank, so that it can't make a
    comment of a minus before it."""
    if value is None:
        return "NULL"
    if kind is VariableType.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind in (VariableType.INTEGER, VariableType.NUMBER):
        text = repr(value)
        # Minus zero too.
        return f" {text}" if text.startswith("-") else text
    assert isinstance(value, str)
    if kind is VariableType.IDENTIFIER:
        mark = '"' if dialect is Engine.POSTGRES else "`"
        return mark + value.replace(mark, mark * 2) + mark
    return _literal(value, dialect)


def _literal(value: str, dialect: Engine) -> str:
    quoted = "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    # PostgreSQL reads backslashes as such in E'…' only. Doubled quotes close nothing, however a server reads
    # backslashes.
    return f"E{quoted}" if dialect is Engine.POSTGRES and "\\" in value else quoted
