"""Findings of consistency checks."""

from piccolo.columns import BigSerial, ForeignKey, Text
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.hosts import EngineHost


class Finding(Table, tablename="findings", db=DB):
    """A violation of a consistency rule, from the first run that found it to the last. The row is deleted when a run no
    longer finds it.

    Without a host it concerns our own records. `mark` is an orphan's marker.
    """

    id = BigSerial(primary_key=True)
    host_id = ForeignKey(EngineHost, null=True, on_delete=OnDelete.cascade)
    rule = Text()
    subject = Text()
    mark = Text(default="")
    detail = Text()
    first_seen_at = columns.created_at()
    last_seen_at = columns.created_at()
