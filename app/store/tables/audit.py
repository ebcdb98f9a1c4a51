"""Who did what. Events and leaves are partitioned by month and made by their migration's SQL, since no class here can
declare such a table: `audit_events` and `audit_leaves`."""

from piccolo.columns import BigInt, BigSerial, Bytea, Integer, Timestamptz
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB


class AuditSeal(Table, tablename="audit_seals", db=DB):
    """A link of the chain over the events: `id` counts without gaps. It covers `events` events, those after the
    previous seal's up to `last_id` of `batch`, whose hashes are its leaves in `audit_leaves`. `hash` is over all of
    this and `previous`, the hash of the seal before."""

    id = BigInt(primary_key=True)
    at = Timestamptz()
    batch = BigInt()
    last_id = BigInt()
    events = Integer()
    leaves_hash = Bytea()
    previous = Bytea()
    hash = Bytea()


class AuditRefusal(Table, tablename="audit_refusals", db=DB):
    """How many changes of a user were refused in an hour: only a limited number of them leave an event."""

    id = BigSerial(primary_key=True)
    user_id = BigInt()
    hour = Timestamptz()
    team_id = BigInt(null=True, default=None)
    refusals = Integer()
    one_an_hour = Unique([user_id, hour])
