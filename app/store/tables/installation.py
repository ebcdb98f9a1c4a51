"""Which installation this is."""

from piccolo.columns import UUID
from piccolo.table import Table

from app.store.engine import DB


class Installation(Table, tablename="installation", db=DB):
    """One row, made with the table and never changed: what is on an engine host under its id is ours. A copy of our
    database is the same installation."""

    id = UUID(primary_key=True)
