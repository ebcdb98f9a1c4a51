"""Whether SQL that a dialect allows is what this question asks for, and what this team's questions may become."""

from app.dialects.verdict import AllowedSQL, Refused, SqlClass

KINDS = {"read": SqlClass.SELECT, "write": SqlClass.WRITE, "ddl": SqlClass.DDL_BATCH}
"""What models and operators call each class, from the least on: each includes those before it."""
_ORDER = tuple(KINDS.values())


class OtherKind(Refused):
    """The SQL is not what the model said that the question asks for."""

    by = "kind"


class BeyondPolicy(Refused):
    """The team's questions may not go so far."""

    by = "policy"


def check_kind(allowed: AllowedSQL, declared: str | None) -> None:
    """Checks that the SQL is of the declared kind: a question that was understood as a read never writes. Without a
    declared kind it counts as a read. Raises `OtherKind`."""
    expected = KINDS.get(declared or "read", SqlClass.SELECT)
    if allowed.sql_class is not expected:
        raise OtherKind(
            f"The question was understood as one for {_named(expected)}, but the SQL is {_named(allowed.sql_class)}."
        )


def check_policy(allowed: AllowedSQL, most: str) -> None:
    """`most` is the team's setting: `read`, `write` or `ddl`. Raises `BeyondPolicy`."""
    if _ORDER.index(allowed.sql_class) > _ORDER.index(KINDS[most]):
        raise BeyondPolicy(f"Your team's questions may not become {_named(allowed.sql_class)}.")


def _named(sql_class: SqlClass) -> str:
    return {
        SqlClass.SELECT: "a read",
        SqlClass.WRITE: "a change of rows",
        SqlClass.DDL_BATCH: "a change of the schema",
    }[sql_class]
