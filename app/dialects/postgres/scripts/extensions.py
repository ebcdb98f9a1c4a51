"""Which PostgreSQL extensions a blueprint may ask for."""

from collections.abc import Set

from postgast.pg_query_pb2 import DropBehavior, Node, ObjectType

TRUSTED = frozenset(
    {
        "btree_gin",
        "btree_gist",
        "citext",
        "cube",
        "dict_int",
        "fuzzystrmatch",
        "hstore",
        "intarray",
        "isn",
        "lo",
        "ltree",
        "pg_trgm",
        "pgcrypto",
        "plpgsql",
        "seg",
        "tablefunc",
        "tcn",
        "tsm_system_rows",
        "tsm_system_time",
        "unaccent",
        "uuid-ossp",
    }
)
"""What PostgreSQL itself lets the owner of a database install. Procedural languages are trusted too, and aren't here:
engine hosts don't offer them."""


def refusal(name: str, provided: Set[str], *, if_not_exists: bool) -> str | None:
    """Why a blueprint may not create the extension; None when it may. `provided` are those that engine hosts offer: of
    these, databases have from the start what isn't trusted."""
    if name in TRUSTED:
        return None
    if not is_there(name, provided):
        may = ", ".join(sorted(TRUSTED | provided))
        return f"the extension {name} needs a superuser; blueprints may create these: {may}"
    if not if_not_exists:
        return f"a database has the extension {name} from the start; write CREATE EXTENSION IF NOT EXISTS {name}"
    return None


def named(node: Node) -> list[str]:
    """The extensions that a COMMENT or a DROP is about; none for others, and for a DROP that goes on to what depends on
    them."""
    match node.WhichOneof("node"):
        case "comment_stmt" if node.comment_stmt.objtype == ObjectType.OBJECT_EXTENSION:
            return [node.comment_stmt.object.string.sval]
        case "drop_stmt" if (
            node.drop_stmt.remove_type == ObjectType.OBJECT_EXTENSION
            and node.drop_stmt.behavior != DropBehavior.DROP_CASCADE
        ):
            return [item.string.sval for item in node.drop_stmt.objects]
    return []


def is_there(name: str, provided: Set[str]) -> bool:
    """Whether databases have the extension from the start, as the server's and not their own."""
    return name in provided and name not in TRUSTED
