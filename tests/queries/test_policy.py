"""What a question was understood as, and what its team's questions may become."""

import pytest

from app.dialects.verdict import AllowedSQL, Refused, SqlClass
from app.queries.policy import check_kind, check_policy


def test_the_kind_that_was_declared() -> None:
    read, write = (AllowedSQL(sql_class=kind, statements=("x",)) for kind in (SqlClass.SELECT, SqlClass.WRITE))
    check_kind(read, "read")
    check_kind(read, None)
    check_kind(write, "write")
    for verdict_, declared in ((read, "write"), (write, "read"), (write, None), (write, "ddl"), (read, "nonsense!")):
        if (verdict_, declared) == (read, "nonsense!"):
            check_kind(verdict_, declared)
            continue
        with pytest.raises(Refused):
            check_kind(verdict_, declared)


def test_policies_include_what_is_less() -> None:
    for most, names in (("read", "s"), ("write", "sw"), ("ddl", "swd")):
        for kind in SqlClass:
            made = AllowedSQL(sql_class=kind, statements=("x",))
            if kind.value[0] in names:
                check_policy(made, most)
            else:
                with pytest.raises(Refused):
                    check_policy(made, most)
