"""Errors while the embedded stack is prepared, started or running."""


class StackError(Exception):
    """The stack can't run. The message is for the operator: what is wrong and what to do."""
