"""What each PostgreSQL statement that a blueprint may hold is called, and what it is about."""

from collections.abc import Callable
from typing import Any

from postgast.pg_query_pb2 import Node, ObjectType

from app.dialects.analysis import StatementSummary
from app.dialects.postgres.scripts import names


def describe(node: Node) -> StatementSummary | None:
    """The kind of a statement and its object; None for a statement that no blueprint may hold."""
    which = node.WhichOneof("node")
    describer = _DESCRIBERS.get(str(which))
    return describer(getattr(node, str(which))) if describer else None


def object_type(number: ObjectType) -> str:
    """`OBJECT_MATVIEW` as `materialized view`."""
    word: str = ObjectType.Name(number).removeprefix("OBJECT_").lower()
    return _OBJECT_TYPES.get(word, word)


_OBJECT_TYPES = {
    "matview": "materialized view",
    "statistic_ext": "statistics",
    "tabconstraint": "constraint",
    "domconstraint": "constraint",
    "event_trigger": "event trigger",
    "foreign_table": "foreign table",
    "foreign_server": "server",
    "fdw": "foreign data wrapper",
    "opclass": "operator class",
    "opfamily": "operator family",
    "tsconfiguration": "text search configuration",
    "tsdictionary": "text search dictionary",
    "tsparser": "text search parser",
    "tstemplate": "text search template",
    "user_mapping": "user mapping",
    "largeobject": "large object",
}

Describer = Callable[[Any], StatementSummary]


def _makes(what: str, name: Callable[[Any], str]) -> Describer:
    return lambda node: StatementSummary(f"CREATE {what.upper()}", name(node) or None, what, True)


def _about(kind: str, what: str | None, name: Callable[[Any], str]) -> Describer:
    return lambda node: StatementSummary(kind, name(node) or None, what)


def _plain(kind: str) -> Describer:
    return lambda node: StatementSummary(kind)


def _made_from_query(node: Any) -> StatementSummary:
    what = object_type(node.objtype)
    return StatementSummary(f"CREATE {what.upper()}", names.relation(node.into.rel), what, True)


def _select(node: Any) -> StatementSummary:
    if node.HasField("into_clause"):
        return StatementSummary("SELECT INTO", names.relation(node.into_clause.rel), "table", True)
    return StatementSummary("SELECT")


def _typed(verb: str) -> Describer:
    def describe_typed(node: Any) -> StatementSummary:
        what = object_type(_type_of(node))
        return StatementSummary(f"{verb} {what.upper()}", _target(node) or None, what)

    return describe_typed


def _type_of(node: Any) -> ObjectType:
    for field in ("objtype", "object_type", "rename_type"):
        if field in node.DESCRIPTOR.fields_by_name:
            number: ObjectType = getattr(node, field)
            # Renaming or retyping a column alters its table.
            if field == "rename_type" and number in (
                ObjectType.OBJECT_COLUMN,
                ObjectType.OBJECT_ATTRIBUTE,
                ObjectType.OBJECT_TABCONSTRAINT,
            ):
                return node.relation_type if node.relation_type else ObjectType.OBJECT_TABLE
            return number
    raise AssertionError(node.DESCRIPTOR.name)


def _target(node: Any) -> str:
    if node.HasField("relation") and node.relation.relname:
        return names.relation(node.relation)
    return names.of(node.object) if "object" in node.DESCRIPTOR.fields_by_name else ""


def _drop(node: Any) -> StatementSummary:
    what = object_type(node.remove_type)
    return StatementSummary(f"DROP {what.upper()}", ", ".join(names.of(item) for item in node.objects), what)


def _relations(node: Any) -> str:
    return ", ".join(names.of(item) for item in node.relations)


def _set(node: Any) -> StatementSummary:
    return StatementSummary("RESET" if node.kind in (5, 6) else "SET", node.name or None)


def _function(node: Any) -> StatementSummary:
    what = "procedure" if node.is_procedure else "function"
    return StatementSummary(f"CREATE {what.upper()}", names.dotted(node.funcname), what, True)


def _function_altered(node: Any) -> StatementSummary:
    what = object_type(node.objtype)
    return StatementSummary(f"ALTER {what.upper()}", names.dotted(node.func.objname), what)


def _defined(node: Any) -> StatementSummary:
    what = object_type(node.kind)
    return StatementSummary(f"CREATE {what.upper()}", names.dotted(node.defnames), what, True)


def _enum_altered(node: Any) -> StatementSummary:
    return StatementSummary("ALTER TYPE", names.dotted(node.type_name), "type")


_DESCRIBERS: dict[str, Describer] = {
    "create_stmt": _makes("table", lambda n: names.relation(n.relation)),
    "create_table_as_stmt": _made_from_query,
    "index_stmt": _makes("index", lambda n: n.idxname),
    "view_stmt": _makes("view", lambda n: names.relation(n.view)),
    "create_seq_stmt": _makes("sequence", lambda n: names.relation(n.sequence)),
    "create_function_stmt": _function,
    "create_trig_stmt": _makes("trigger", lambda n: n.trigname),
    "create_enum_stmt": _makes("type", lambda n: names.dotted(n.type_name)),
    "create_range_stmt": _makes("type", lambda n: names.dotted(n.type_name)),
    "composite_type_stmt": _makes("type", lambda n: names.relation(n.typevar)),
    "create_domain_stmt": _makes("domain", lambda n: names.dotted(n.domainname)),
    "define_stmt": _defined,
    "create_schema_stmt": _makes("schema", lambda n: n.schemaname),
    "create_extension_stmt": _makes("extension", lambda n: n.extname),
    "create_policy_stmt": _makes("policy", lambda n: n.policy_name),
    "rule_stmt": _makes("rule", lambda n: n.rulename),
    "create_stats_stmt": _makes("statistics", lambda n: names.dotted(n.defnames)),
    "create_cast_stmt": _makes("cast", lambda n: ""),
    "create_op_class_stmt": _makes("operator class", lambda n: names.dotted(n.opclassname)),
    "create_op_family_stmt": _makes("operator family", lambda n: names.dotted(n.opfamilyname)),
    "create_conversion_stmt": _makes("conversion", lambda n: names.dotted(n.conversion_name)),
    "create_publication_stmt": _makes("publication", lambda n: n.pubname),
    "alter_publication_stmt": _about("ALTER PUBLICATION", "publication", lambda n: n.pubname),
    "alter_table_stmt": _typed("ALTER"),
    "rename_stmt": _typed("ALTER"),
    "alter_object_schema_stmt": _typed("ALTER"),
    "alter_owner_stmt": _typed("ALTER"),
    "alter_object_depends_stmt": _typed("ALTER"),
    "alter_domain_stmt": _about("ALTER DOMAIN", "domain", lambda n: names.dotted(n.type_name)),
    "alter_enum_stmt": _enum_altered,
    "alter_type_stmt": _enum_altered,
    "alter_seq_stmt": _about("ALTER SEQUENCE", "sequence", lambda n: names.relation(n.sequence)),
    "alter_function_stmt": _function_altered,
    "alter_policy_stmt": _about("ALTER POLICY", "policy", lambda n: n.policy_name),
    "alter_stats_stmt": _about("ALTER STATISTICS", "statistics", lambda n: names.dotted(n.defnames)),
    "alter_operator_stmt": _about("ALTER OPERATOR", "operator", lambda n: names.dotted(n.opername.objname)),
    "alter_op_family_stmt": _about("ALTER OPERATOR FAMILY", "operator family", lambda n: names.dotted(n.opfamilyname)),
    "alter_extension_stmt": _about("ALTER EXTENSION", "extension", lambda n: n.extname),
    "alter_collation_stmt": _about("ALTER COLLATION", "collation", lambda n: names.dotted(n.collname)),
    "alter_tsdictionary_stmt": _about("ALTER TEXT SEARCH DICTIONARY", None, lambda n: names.dotted(n.dictname)),
    "alter_tsconfiguration_stmt": _about("ALTER TEXT SEARCH CONFIGURATION", None, lambda n: names.dotted(n.cfgname)),
    "grant_stmt": lambda n: StatementSummary("GRANT" if n.is_grant else "REVOKE"),
    "alter_default_privileges_stmt": _plain("ALTER DEFAULT PRIVILEGES"),
    "drop_stmt": _drop,
    "truncate_stmt": _about("TRUNCATE", "table", _relations),
    "comment_stmt": lambda n: StatementSummary("COMMENT ON", names.of(n.object) or None, object_type(n.objtype)),
    "insert_stmt": _about("INSERT", "table", lambda n: names.relation(n.relation)),
    "update_stmt": _about("UPDATE", "table", lambda n: names.relation(n.relation)),
    "delete_stmt": _about("DELETE", "table", lambda n: names.relation(n.relation)),
    "merge_stmt": _about("MERGE", "table", lambda n: names.relation(n.relation)),
    "select_stmt": _select,
    "do_stmt": _plain("DO"),
    "call_stmt": _about("CALL", "procedure", lambda n: names.dotted(n.funccall.funcname)),
    "variable_set_stmt": _set,
    "variable_show_stmt": _about("SHOW", None, lambda n: n.name),
    "refresh_mat_view_stmt": _about(
        "REFRESH MATERIALIZED VIEW", "materialized view", lambda n: names.relation(n.relation)
    ),
    "reindex_stmt": _about("REINDEX", None, lambda n: names.relation(n.relation)),
    "cluster_stmt": _about("CLUSTER", "table", lambda n: names.relation(n.relation)),
    "vacuum_stmt": _plain("ANALYZE"),
    "lock_stmt": _about("LOCK", "table", _relations),
    "constraints_set_stmt": _plain("SET CONSTRAINTS"),
    "explain_stmt": _plain("EXPLAIN"),
    "prepare_stmt": _about("PREPARE", None, lambda n: n.name),
    "execute_stmt": _about("EXECUTE", None, lambda n: n.name),
    "deallocate_stmt": _about("DEALLOCATE", None, lambda n: n.name),
    "notify_stmt": _about("NOTIFY", None, lambda n: n.conditionname),
}
