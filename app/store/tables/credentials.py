"""What tenants log in with besides a database's own row: its rotations and its users."""

from piccolo.columns import UUID, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.databases import Database


class CredentialRotation(Table, tablename="credential_rotations", db=DB):
    """One change of a database's user name or password. `login_name` and `password_sealed` are the new ones,
    `previous_login` and `previous_sealed` those that it had. `previous_sealed` goes when the engine refuses them, the
    new password some time after the request's key has expired.

    `proven_at` is when a login with the new ones succeeded; `retires_at`, which is unknown before, when the previous
    ones end. `changed_at` is when its status changed last. At most one of a database is under way.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    status = Text()
    overlap_seconds = Integer()
    end_sessions = Boolean(default=False)
    login_name = Text()
    password_sealed = Bytea(null=True, default=None)
    previous_login = Text()
    previous_sealed = Bytea(null=True, default=None)
    previous_created_at = columns.moment()
    retires_at = columns.moment()
    proven_at = columns.moment()
    completed_at = columns.moment()
    changed_at = columns.created_at()
    created_at = columns.created_at()


class DatabaseUser(Table, tablename="database_users", db=DB):
    """A further account of a database. `name` is what its team calls it, `login_name` what it is called on the host.

    The row is written before the account is made, and deleted when the account is gone. `changed_at` is when its status
    changed last.

    `next_sealed` is the password that a rotation under way gives it, and `next_rotation` that rotation's
    uuid; `rotation` and `rotated_at` say which one gave it the present password, and when.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.cascade)
    name = Text()
    login_name = Text()
    access = Text()
    connection_limit = Integer()
    password_sealed = Bytea()
    rotation = UUID(null=True, default=None)
    rotated_at = columns.moment()
    next_sealed = Bytea(null=True, default=None)
    next_rotation = UUID(null=True, default=None)
    next_ends_sessions = Boolean(default=False)
    status = Text()
    expires_at = columns.moment()
    changed_at = columns.created_at()
    created_at = columns.created_at()
    one_of_a_name = Unique([database_id, name])
