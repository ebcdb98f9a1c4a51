"""Columns of our own tables, named in statements."""

from piccolo.table import Table


def columns_of(table: type[Table], alias: str) -> str:
    """All that this version knows, as the result of a statement has to name them. Of `*` a migration of the next
    version would make another result: PostgreSQL refuses a statement that was prepared before and has another one
    now, and within a transaction the driver can't prepare it anew."""
    return ", ".join(f"{alias}.{column._meta.db_column_name}" for column in table._meta.columns)
