"""Names as PostgreSQL's statements have them. For texts there is `app.engines.naming.literal`."""


def quote_name(name: str) -> str:
    """Quotes a name, whatever a tenant may have called something."""
    return '"' + name.replace('"', '""') + '"'
