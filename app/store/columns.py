"""Columns of our own tables, named in statements."""

from collections.abc import Collection

from piccolo.table import Table


def columns_of(table: type[Table], alias: str, *, without: Collection[str] = ()) -> str:
    """All columns that this version knows, as the result of a statement has to name them. With `*`, a migration of the
    next version would change the result: PostgreSQL refuses a statement that was prepared before and has another result
    now, and within a transaction the driver can't prepare it anew. `without` are columns that are read another way, or
    not at all."""
    names = [column._meta.db_column_name for column in table._meta.columns]
    return ", ".join(f"{alias}.{name}" for name in names if name not in without)
