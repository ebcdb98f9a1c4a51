"""How large the warm pools are to be."""

from piccolo.columns import BigSerial, Integer, Text
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB


class PoolTarget(Table, tablename="pool_targets", db=DB):
    """The size of one region's pool of one engine: `size` is what an operator has set, null where nobody has. `setting`
    is what the workers go by then, which they write here for the command line to show."""

    id = BigSerial(primary_key=True)
    region = Text()
    engine = Text()
    size = Integer(null=True, default=None)
    setting = Integer(null=True, default=None)
    one_each = Unique([region, engine])
