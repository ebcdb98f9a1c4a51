"""The names in PostgreSQL's syntax trees, as people write them."""

from collections.abc import Iterable

from postgast.pg_query_pb2 import Node, RangeVar, TypeName


def relation(found: RangeVar) -> str:
    """`schema.name`, or `name` where the script leaves the schema to the search path."""
    return ".".join(part for part in (found.catalogname, found.schemaname, found.relname) if part)


def dotted(nodes: Iterable[Node]) -> str:
    return ".".join(node.string.sval for node in nodes)


def of(node: Node) -> str:
    """The name in whichever form the grammar holds it: string, list, relation, type, routine."""
    match node.WhichOneof("node"):
        case "string":
            return str(node.string.sval)
        case "list":
            return ".".join(of(item) for item in node.list.items)
        case "range_var":
            return relation(node.range_var)
        case "type_name":
            return type_name(node.type_name)
        case "object_with_args":
            return dotted(node.object_with_args.objname)
        case _:
            return ""


def type_name(found: TypeName) -> str:
    return dotted(found.names)
