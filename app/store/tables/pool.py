"""How large the warm pools are to be."""

from piccolo.columns import BigSerial, Boolean, Integer, Text
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB


class PoolTarget(Table, tablename="pool_targets", db=DB):
    """The size of one region's pool of one engine. `by_operator` tells a size that an operator has set from the
    workers' own setting, which they write here for the command line to show."""

    id = BigSerial(primary_key=True)
    region = Text()
    engine = Text()
    size = Integer()
    by_operator = Boolean(default=False)
    one_each = Unique([region, engine])
