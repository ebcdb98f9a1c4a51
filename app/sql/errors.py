"""What is wrong with a script, and where."""


class SqlError(Exception):
    """The script can't be read. `offset` counts characters from 0, `message` is for people."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
