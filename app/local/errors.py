"""What can go wrong while the embedded stack is prepared, started or kept running."""


class StackError(Exception):
    """The stack can't run as asked. The message is written for the operator: what is wrong and what to do."""
