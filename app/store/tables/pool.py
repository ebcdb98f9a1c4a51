"""The sizes of the warm pools."""

from piccolo.columns import BigSerial, Integer, Text
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB


class PoolTarget(Table, tablename="pool_targets", db=DB):
    """The size of one region's pool for one engine. `size` is set by an operator, or null. `setting` is the default
    from the workers' settings, stored here for the command line."""

    id = BigSerial(primary_key=True)
    region = Text()
    engine = Text()
    size = Integer(null=True, default=None)
    setting = Integer(null=True, default=None)
    one_each = Unique([region, engine])
