"""PostgreSQL statements that no blueprint may hold, each with its reason, which says what to do."""

from typing import Any

from postgast.pg_query_pb2 import Node, ObjectType, ReindexObjectType

TRANSACTION = (
    "{kind} controls the transaction; a blueprint is applied in one transaction of its own, so remove the statement"
)
ROLES = "{kind} is about roles and rights, which blueprints don't manage: everything belongs to the database's own user"
DATABASES = "{kind} is about databases; a blueprint is applied inside one database, so remove the statement"
OUTSIDE = "{kind} can't run inside a transaction, and a blueprint is applied in one"
SERVER = "{kind} needs rights over the server, which a database's user doesn't have"
FOREIGN = "{kind} reaches other servers, which blueprints may not"
SESSION = "{kind} is about the client's session, which ends with the blueprint; remove the statement"

_REFUSED: dict[str, tuple[str, str]] = {
    "transaction_stmt": ("transaction control", TRANSACTION),
    "createdb_stmt": ("CREATE DATABASE", DATABASES),
    "dropdb_stmt": ("DROP DATABASE", DATABASES),
    "alter_database_stmt": ("ALTER DATABASE", DATABASES),
    "alter_database_set_stmt": ("ALTER DATABASE", DATABASES),
    "alter_database_refresh_coll_stmt": ("ALTER DATABASE", DATABASES),
    "grant_stmt": ("GRANT or REVOKE", ROLES),
    "grant_role_stmt": ("GRANT or REVOKE", ROLES),
    "alter_default_privileges_stmt": ("ALTER DEFAULT PRIVILEGES", ROLES),
    "create_role_stmt": ("CREATE ROLE or USER", ROLES),
    "alter_role_stmt": ("ALTER ROLE or USER", ROLES),
    "alter_role_set_stmt": ("ALTER ROLE or USER", ROLES),
    "drop_role_stmt": ("DROP ROLE or USER", ROLES),
    "reassign_owned_stmt": ("REASSIGN OWNED", ROLES),
    "drop_owned_stmt": ("DROP OWNED", ROLES),
    "sec_label_stmt": ("SECURITY LABEL", SERVER),
    "alter_system_stmt": ("ALTER SYSTEM", SERVER),
    "create_table_space_stmt": ("CREATE TABLESPACE", SERVER),
    "drop_table_space_stmt": ("DROP TABLESPACE", SERVER),
    "alter_table_space_options_stmt": ("ALTER TABLESPACE", SERVER),
    "alter_table_move_all_stmt": ("ALTER … ALL IN TABLESPACE", SERVER),
    "create_am_stmt": ("CREATE ACCESS METHOD", SERVER),
    "create_event_trig_stmt": ("CREATE EVENT TRIGGER", SERVER),
    "alter_event_trig_stmt": ("ALTER EVENT TRIGGER", SERVER),
    "create_plang_stmt": ("CREATE LANGUAGE", SERVER),
    "create_transform_stmt": ("CREATE TRANSFORM", SERVER),
    "alter_extension_contents_stmt": ("ALTER EXTENSION ADD or DROP", SERVER),
    "check_point_stmt": ("CHECKPOINT", SERVER),
    "load_stmt": ("LOAD", SERVER),
    "create_subscription_stmt": ("CREATE SUBSCRIPTION", OUTSIDE),
    "alter_subscription_stmt": ("ALTER SUBSCRIPTION", OUTSIDE),
    "drop_subscription_stmt": ("DROP SUBSCRIPTION", OUTSIDE),
    "create_fdw_stmt": ("CREATE FOREIGN DATA WRAPPER", FOREIGN),
    "alter_fdw_stmt": ("ALTER FOREIGN DATA WRAPPER", FOREIGN),
    "create_foreign_server_stmt": ("CREATE SERVER", FOREIGN),
    "alter_foreign_server_stmt": ("ALTER SERVER", FOREIGN),
    "create_foreign_table_stmt": ("CREATE FOREIGN TABLE", FOREIGN),
    "create_user_mapping_stmt": ("CREATE USER MAPPING", FOREIGN),
    "alter_user_mapping_stmt": ("ALTER USER MAPPING", FOREIGN),
    "drop_user_mapping_stmt": ("DROP USER MAPPING", FOREIGN),
    "import_foreign_schema_stmt": ("IMPORT FOREIGN SCHEMA", FOREIGN),
    "discard_stmt": ("DISCARD", SESSION),
    "listen_stmt": ("LISTEN", SESSION),
    "unlisten_stmt": ("UNLISTEN", SESSION),
    "declare_cursor_stmt": ("DECLARE", SESSION),
    "fetch_stmt": ("FETCH or MOVE", SESSION),
    "close_portal_stmt": ("CLOSE", SESSION),
}

_TRANSACTION_WORDS = ["", "BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE SAVEPOINT"]
_TRANSACTION_WORDS += ["ROLLBACK TO SAVEPOINT", "PREPARE TRANSACTION", "COMMIT PREPARED", "ROLLBACK PREPARED"]


def refusal(node: Node) -> str | None:
    """Why no blueprint may hold the statement, whatever is in it; None when it depends or it may."""
    which = str(node.WhichOneof("node"))
    if which in _REFUSED:
        kind, reason = _REFUSED[which]
        if which == "transaction_stmt":
            kind = _TRANSACTION_WORDS[node.transaction_stmt.kind]
        return reason.format(kind=kind)
    depends = _DEPENDS.get(which)
    return depends(getattr(node, which)) if depends else None


def _copy(node: Any) -> str:
    if node.is_program:
        return "COPY … PROGRAM runs a program on the server, which blueprints may not"
    if node.filename:
        return "COPY with a file name reads or writes a file of the server, which blueprints may not; use INSERT"
    if node.is_from:
        return (
            "COPY … FROM stdin reads data that only psql can send; "
            "write the rows as INSERT statements (pg_dump --inserts does)"
        )
    return "COPY … TO stdout sends data to a client, and nobody is there to take it; remove the statement"


def _index(node: Any) -> str | None:
    return OUTSIDE.format(kind="CREATE INDEX CONCURRENTLY") + "; leave out CONCURRENTLY" if node.concurrent else None


def _drop(node: Any) -> str | None:
    if node.concurrent:
        return OUTSIDE.format(kind="DROP INDEX CONCURRENTLY") + "; leave out CONCURRENTLY"
    if node.remove_type in (ObjectType.OBJECT_EVENT_TRIGGER, ObjectType.OBJECT_ACCESS_METHOD):
        return SERVER.format(kind="DROP of an event trigger or access method")
    if node.remove_type in (ObjectType.OBJECT_FDW, ObjectType.OBJECT_FOREIGN_SERVER, ObjectType.OBJECT_FOREIGN_TABLE):
        return FOREIGN.format(kind="DROP of a server, wrapper or foreign table")
    return None


def _reindex(node: Any) -> str | None:
    if any(option.def_elem.defname == "concurrently" for option in node.params):
        return OUTSIDE.format(kind="REINDEX CONCURRENTLY") + "; leave out CONCURRENTLY"
    if node.kind not in (ReindexObjectType.REINDEX_OBJECT_INDEX, ReindexObjectType.REINDEX_OBJECT_TABLE):
        return OUTSIDE.format(kind="REINDEX of a schema or database") + "; name the tables"
    return None


def _vacuum(node: Any) -> str | None:
    return OUTSIDE.format(kind="VACUUM") if node.is_vacuumcmd else None


def _cluster(node: Any) -> str | None:
    return None if node.HasField("relation") else OUTSIDE.format(kind="CLUSTER without a table")


_DEPENDS: dict[str, Any] = {
    "copy_stmt": _copy,
    "index_stmt": _index,
    "drop_stmt": _drop,
    "reindex_stmt": _reindex,
    "vacuum_stmt": _vacuum,
    "cluster_stmt": _cluster,
}
