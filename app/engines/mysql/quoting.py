"""Names and texts as MySQL's and MariaDB's statements have them."""


def quote_name(name: str) -> str:
    """Quotes a name, whatever a tenant may have called something."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Quotes a text, for sessions in which a backslash is an escape, as it is by default."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
