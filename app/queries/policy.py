"""Whether SQL may be executed for a question, and as what."""

from app.contracts.base import Engine
from app.dialects.mysql.judge import rules as mysql
from app.dialects.postgres.judge import rules as postgres
from app.dialects.verdict import AllowedSQL, BeyondPolicy, OtherKind, SqlClass

KINDS = {"read": SqlClass.SELECT, "write": SqlClass.WRITE, "ddl": SqlClass.DDL_BATCH}
"""What a model calls each class, and an operator, from the least on: each includes those before it."""
_ORDER = tuple(KINDS.values())


def judge(engine: Engine, sql: str, database: str) -> AllowedSQL:
    """By the parse alone. `database` is its name on the host. Raises `Refused`."""
    return postgres.judge(sql) if engine is Engine.POSTGRES else mysql.judge(sql, database)


def check_kind(verdict: AllowedSQL, declared: str | None) -> None:
    """A question read as a question never writes. What was declared as nothing counts as a read. Raises `OtherKind`."""
    expected = KINDS.get(declared or "read", SqlClass.SELECT)
    if verdict.sql_class is not expected:
        raise OtherKind(
            f"The question was understood as one for {_spoken(expected)}, but the SQL is {_spoken(verdict.sql_class)}."
        )


def check_policy(verdict: AllowedSQL, most: str) -> None:
    """`most` is the team's setting: `read`, `write` or `ddl`. Raises `BeyondPolicy`."""
    if _ORDER.index(verdict.sql_class) > _ORDER.index(KINDS[most]):
        raise BeyondPolicy(f"Your team's questions may not become {_spoken(verdict.sql_class)}.")


def _spoken(sql_class: SqlClass) -> str:
    return {
        SqlClass.SELECT: "a read",
        SqlClass.WRITE: "a change of rows",
        SqlClass.DDL_BATCH: "a change of the schema",
    }[sql_class]
