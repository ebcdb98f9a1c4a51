"""Judges SQL for MySQL and MariaDB: an allow-list over sqlglot's nodes, their arguments, functions and relations.

sqlglot is no server: what it doesn't know it passes through as a `Command`, and some of what it reads means something
else to the server. So nothing is allowed that isn't listed, and comments are removed before it parses.
"""

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from app.dialects.mysql import parser
from app.dialects.mysql.judge import nodes
from app.dialects.mysql.judge import show as mysql_show
from app.dialects.mysql.judge import text as mysql_text
from app.dialects.verdict import Refused, SqlClass, Unreadable

_REPLACE = re.compile(r"\AREPLACE\b(?!\s*\()", re.IGNORECASE)
_INDEXES = (exp.Index, exp.IndexColumnConstraint, exp.UniqueColumnConstraint, exp.PrimaryKey)


def classified(sql: str, database: str) -> list[tuple[str, SqlClass]]:
    """Each statement without comments, with its class. `database` is the tenant's own, in lower case, the only one that
    may be named. Raises `Refused`; `Unreadable` for what sqlglot doesn't take."""
    return [(text, _class_of(text, database)) for text in mysql_text.statements(sql)]


def _class_of(text: str, database: str) -> SqlClass:
    if mysql_show.is_schema_query(text, database):
        return SqlClass.SELECT
    explained = mysql_show.explained(text)
    found = _judge_one(_parse(explained or text), database)
    if explained and found is not SqlClass.SELECT:
        raise Refused("EXPLAIN is for reads alone.")
    return found


def _parse(text: str) -> exp.Expr:
    # REPLACE takes what INSERT takes, and sqlglot knows the one only as a function.
    readable = _REPLACE.sub("INSERT", text)
    try:
        trees = parser.parse(readable)
    except (SqlglotError, parser.Stumbled) as error:
        raise Unreadable(f"It can't be parsed: {str(error).splitlines()[0]}") from None
    except parser.TooInvolved:
        raise Refused("It is nested too deeply.") from None
    if len(trees) != 1 or trees[0] is None or any(node.comments for node in trees[0].walk()):
        raise Refused("It is not one plain statement.")
    return trees[0]


def _judge_one(root: exp.Expr, database: str) -> SqlClass:
    if isinstance(root, exp.Command):
        raise Refused(f"{str(root.this).upper()} is not a statement that a question may become.")
    if isinstance(root, exp.Select | exp.SetOperation | exp.Subquery | exp.Values | exp.Table):
        _check(root, nodes.READING, database)
        return SqlClass.SELECT
    if isinstance(root, exp.Insert | exp.Update | exp.Delete):
        _check(root, nodes.WRITING, database)
        if sum(1 for _ in root.find_all(exp.Insert, exp.Update, exp.Delete)) > 1:
            raise Refused("One statement changes rows inside another.")
        if not isinstance(root, exp.Insert):
            _check_condition(root)
        return SqlClass.WRITE
    if isinstance(root, exp.Create | exp.Alter):
        _check(root, nodes.CHANGING, database)
        _check_change(root)
        return SqlClass.DDL_BATCH
    raise Refused(f"{type(root).__name__} is not a statement that a question may become.")


def _check(root: exp.Expr, allowed: frozenset[str], database: str) -> None:
    for node in root.walk():
        kind = type(node).__name__
        if kind not in allowed:
            raise Refused(f"{kind} is not allowed here.")
        _check_arguments(node)
        if isinstance(node, exp.Anonymous):
            _check_function(node)
        elif isinstance(node, exp.Table | exp.Column):
            _check_names(node, database)
        elif isinstance(node, exp.EngineProperty) and node.name.lower() != "innodb":
            raise Refused("Tables are kept by InnoDB alone.")


def _check_arguments(node: exp.Expr) -> None:
    known = nodes.ARGUMENTS.get(type(node).__name__)
    if known is None:
        return
    for name, value in node.args.items():
        if value and name not in known:
            raise Refused(f"{type(node).__name__} may not say {name.strip('_')}.")


def _check_function(node: exp.Anonymous) -> None:
    if node.name.lower() in nodes.FUNCTIONS and not isinstance(node.parent, exp.Dot):
        return
    # The length of a prefix in an index, `name(10)`, looks like a call.
    arguments = node.expressions
    prefix = len(arguments) == 1 and isinstance(arguments[0], exp.Literal) and arguments[0].is_int
    prefix = prefix and not isinstance(node.parent, exp.Paren)  # an index of an expression has parentheses of its own
    if not (prefix and node.find_ancestor(*_INDEXES)):
        raise Refused(f"The function {node.name} is not one that a question may use.")


def _check_names(node: exp.Table | exp.Column, database: str) -> None:
    if node.args.get("catalog"):
        raise Refused("Another database may not be named.")
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier | exp.JSONTable):
        raise Refused("A table is named by a plain name.")
    schema = node.text("db").lower()
    if schema == "information_schema":
        if isinstance(node, exp.Table) and node.name.lower() not in nodes.INFORMATION_SCHEMA:
            raise Refused(f"information_schema.{node.name} is not one of the tables that a question may read.")
    elif schema not in ("", database):
        raise Refused("Another database may not be named.")


def _check_condition(root: exp.Expr) -> None:
    where = root.args.get("where")
    if where is None or where.find(exp.Column) is None:
        raise Refused("Changing or deleting rows needs a WHERE that names a column.")


def _check_change(root: exp.Create | exp.Alter) -> None:
    if isinstance(root, exp.Alter):
        kinds = (exp.ColumnDef, exp.AddConstraint, exp.AlterColumn)
        if root.args.get("kind") != "TABLE" or not all(isinstance(each, kinds) for each in root.args["actions"]):
            raise Refused("Only what adds to a table may alter it: columns, indexes, constraints, defaults.")
        return
    kind = root.args.get("kind")
    if kind not in ("TABLE", "INDEX", "VIEW"):
        raise Refused(f"CREATE {kind} is not allowed.")
    if root.args.get("replace"):
        raise Refused("What is there may not be replaced.")
    made_from = root.args.get("expression")
    if made_from is not None and not isinstance(made_from, exp.Select | exp.SetOperation | exp.Subquery):
        raise Refused("A table or view is made from a SELECT alone.")
