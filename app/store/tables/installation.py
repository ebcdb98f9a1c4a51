"""The identity of this installation."""

from piccolo.columns import UUID
from piccolo.table import Table

from app.store.engine import DB


class Installation(Table, tablename="installation", db=DB):
    """One row, created with the table and never changed. What carries its id on an engine host is ours. A copy of
    our database is the same installation."""

    id = UUID(primary_key=True)
