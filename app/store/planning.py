"""Statements that are planned once."""

import re

_PARAMETER = re.compile(r"\$\d+(::\w+(?:\[\])?)")


def planned_once(sql: str) -> str:
    """The same statement with its parameters hidden from the planner. All of them have their type behind them.

    PostgreSQL compares what a plan for these values would cost with what one for any values does, and finds the first
    cheaper where a LIMIT or the length of an array is a parameter. Then it plans anew each time, which takes longer
    than many a statement. Where it can't see the values both cost the same, and the one plan stays. For statements
    whose best plan doesn't depend on the values.
    """
    # With the type once more: any(SELECT …) would be another thing than any of an array.
    return _PARAMETER.sub(r"(SELECT \g<0>)\1", sql)
