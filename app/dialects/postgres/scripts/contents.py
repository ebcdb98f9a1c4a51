"""What is wrong inside PostgreSQL statements of kinds that blueprints may hold."""

from typing import Any

from postgast.pg_query_pb2 import AlterTableType, Node, ObjectType, RoleSpecType

from app.dialects.postgres.scripts import bodies, settings
from app.dialects.postgres.scripts.refusals import DATABASES, FOREIGN, OUTSIDE, ROLES, SERVER, SESSION

SERVER_FUNCTIONS = frozenset(
    {
        "lo_import",
        "lo_export",
        "pg_read_file",
        "pg_read_binary_file",
        "pg_stat_file",
        "pg_ls_dir",
        "pg_ls_logdir",
        "pg_ls_waldir",
        "pg_ls_tmpdir",
        "pg_file_read",
        "pg_file_write",
        "pg_file_rename",
        "pg_file_unlink",
        "pg_logdir_ls",
        "pg_reload_conf",
        "pg_rotate_logfile",
    }
)
RIGHTS_LEFT_OUT = "rights on objects are left out: everything belongs to the database's own user, the only one there is"
_SUPERUSER_DEFINITIONS = {
    ObjectType.OBJECT_TSPARSER: "CREATE TEXT SEARCH PARSER",
    ObjectType.OBJECT_TSTEMPLATE: "CREATE TEXT SEARCH TEMPLATE",
}


def refusal(node: Node) -> str | None:
    """Why the statement can't be in a blueprint, though others of its kind can."""
    check = _CHECKS.get(str(node.WhichOneof("node")))
    return check(getattr(node, str(node.WhichOneof("node")))) if check else None


def left_out(node: Node) -> str | None:
    """Why applying skips the statement, which is harmless but not for this database's user."""
    which = node.WhichOneof("node")
    if which in ("grant_stmt", "alter_default_privileges_stmt"):
        return RIGHTS_LEFT_OUT
    if which == "alter_owner_stmt" or (which == "alter_table_stmt" and _only_changes_owner(node.alter_table_stmt)):
        return "OWNER TO is left out: everything belongs to the database's own user"
    if which == "variable_set_stmt":
        return settings.left_out(*settings.set_statement(node.variable_set_stmt))
    if which == "comment_stmt":
        comment = node.comment_stmt
        if comment.objtype == ObjectType.OBJECT_DATABASE:
            return "COMMENT ON DATABASE is left out: a blueprint doesn't know its database's name"
        if comment.objtype == ObjectType.OBJECT_EXTENSION and comment.object.string.sval == "plpgsql":
            return "COMMENT ON EXTENSION plpgsql is left out: plpgsql belongs to the server"
    return None


def _owners(node: Any) -> list[bool]:
    return [command.alter_table_cmd.subtype == AlterTableType.AT_ChangeOwner for command in node.cmds]


def _only_changes_owner(node: Any) -> bool:
    return all(_owners(node))


def _alter_table(node: Any) -> str | None:
    if node.objtype == ObjectType.OBJECT_FOREIGN_TABLE:
        return FOREIGN.format(kind="ALTER FOREIGN TABLE")
    if any(_owners(node)):
        return "OWNER TO stands beside other changes; put it in a statement of its own, or remove it"
    for command in (item.alter_table_cmd for item in node.cmds):
        match command.subtype:
            case AlterTableType.AT_SetTableSpace:
                return SERVER.format(kind="SET TABLESPACE")
            case AlterTableType.AT_DisableTrigAll | AlterTableType.AT_EnableTrigAll:
                return SERVER.format(kind="ENABLE or DISABLE TRIGGER ALL") + "; TRIGGER USER may serve"
            case AlterTableType.AT_DetachPartition if getattr(command, "def").partition_cmd.concurrent:
                return OUTSIDE.format(kind="DETACH PARTITION CONCURRENTLY")
            case AlterTableType.AT_DetachPartitionFinalize:
                return OUTSIDE.format(kind="DETACH PARTITION FINALIZE")
    return None


def _tablespace(name: str) -> str | None:
    return SERVER.format(kind=f"TABLESPACE {name}") if name not in ("", "pg_default") else None


def _schema(node: Any) -> str | None:
    if node.HasField("authrole") and node.authrole.roletype == RoleSpecType.ROLESPEC_CSTRING:
        return ROLES.format(kind="AUTHORIZATION")
    return None


def _routine(node: Any) -> str | None:
    language = bodies.language(node.options, "sql")
    if language not in bodies.LANGUAGES:
        return f"routines in the language {language} need rights over the server; write them in sql or plpgsql"
    for option in (item.def_elem for item in node.options):
        if option.defname == "set" and option.arg.HasField("variable_set_stmt"):
            name, value = settings.set_statement(option.arg.variable_set_stmt)
            if reason := settings.refusal(name, value):
                return reason
    return None


def _set(node: Any) -> str | None:
    name, value = settings.set_statement(node)
    return SESSION.format(kind="RESET ALL") if name == "ALL" else settings.refusal(name, value)


def _comment(node: Any) -> str | None:
    if node.objtype == ObjectType.OBJECT_ROLE:
        return ROLES.format(kind="COMMENT ON ROLE")
    if node.objtype == ObjectType.OBJECT_TABLESPACE:
        return SERVER.format(kind="COMMENT ON TABLESPACE")
    return None


def _rename(node: Any) -> str | None:
    if node.rename_type == ObjectType.OBJECT_DATABASE:
        return DATABASES.format(kind="ALTER DATABASE")
    if node.rename_type == ObjectType.OBJECT_ROLE:
        return ROLES.format(kind="ALTER ROLE or USER")
    return None


def _define(node: Any) -> str | None:
    if node.kind in _SUPERUSER_DEFINITIONS:
        return SERVER.format(kind=_SUPERUSER_DEFINITIONS[node.kind])
    if node.kind == ObjectType.OBJECT_TYPE:
        return SERVER.format(kind="CREATE TYPE of a base type")
    return None


_CHECKS: dict[str, Any] = {
    "alter_table_stmt": _alter_table,
    "create_stmt": lambda node: _tablespace(node.tablespacename),
    "index_stmt": lambda node: _tablespace(node.table_space),
    "create_schema_stmt": _schema,
    "create_function_stmt": _routine,
    "variable_set_stmt": _set,
    "comment_stmt": _comment,
    "rename_stmt": _rename,
    "define_stmt": _define,
    "create_op_class_stmt": lambda node: SERVER.format(kind="CREATE OPERATOR CLASS"),
    "create_op_family_stmt": lambda node: SERVER.format(kind="CREATE OPERATOR FAMILY"),
    "create_publication_stmt": lambda node: (
        SERVER.format(kind="CREATE PUBLICATION … FOR ALL TABLES") if node.for_all_tables else None
    ),
}
