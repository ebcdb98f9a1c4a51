"""Questions in natural language, and the accounts that read for them."""

from piccolo.columns import BigInt, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.databases import Database


class QueryReader(Table, tablename="query_readers", db=DB):
    """The password of a database's SELECT-only account. The row is created before the account, and deleted with the
    database."""

    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    password_sealed = Bytea()
    created_at = columns.created_at()


class QueryExecution(Table, tablename="query_executions", db=DB):
    """One question, recorded before the model is asked. Never holds result rows, nor an engine's message, which can
    quote them.

    `counts` says whether it counts against the daily allowance; null is a reservation until `reserved_until`, which
    expires if the process dies. `outcome` is null while the question is being answered.
    """

    id = BigSerial(primary_key=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    user_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.set_null)
    question = Text()
    model = Text()
    counts = Boolean(null=True, default=None)
    reserved_until = Timestamptz()
    declared_kind = Text(null=True, default=None)
    sql = Text(null=True, default=None)
    sql_class = Text(null=True, default=None)
    verdict = Text(null=True, default=None)
    reason = Text(null=True, default=None)
    outcome = Text(null=True, default=None)
    error_code = Text(null=True, default=None)
    turns = Integer(default=0)
    prompt_tokens = BigInt(default=0)
    completion_tokens = BigInt(default=0)
    row_count = BigInt(null=True, default=None)
    truncated = Boolean(default=False)
    model_ms = Integer(null=True, default=None)
    duration_ms = Integer(null=True, default=None)
    created_at = columns.created_at()
    finished_at = columns.moment()
