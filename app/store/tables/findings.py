"""What consistency checks found, and since when."""

from piccolo.columns import BigSerial, ForeignKey, Text
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.hosts import EngineHost


class Finding(Table, tablename="findings", db=DB):
    """One thing that is not as it must be, from the first run that saw it to the last. Gone when a run doesn't see it.

    Without a host it is about our own records. `mark` is the marker that an orphan carries.
    """

    id = BigSerial(primary_key=True)
    host_id = ForeignKey(EngineHost, null=True, on_delete=OnDelete.cascade)
    rule = Text()
    subject = Text()
    mark = Text(default="")
    detail = Text()
    first_seen_at = columns.created_at()
    last_seen_at = columns.created_at()
