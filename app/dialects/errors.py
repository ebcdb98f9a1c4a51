"""What is wrong with a script, and where."""


class SqlError(Exception):
    """The script can't be read. `offset` counts characters from 0, `message` is for people."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


class TooDeep(SqlError):
    """Expressions nest or chain further than any parser should be given."""


class TooManyStatements(SqlError):
    """The script goes on after as many statements as it may hold. `offset` is where the next one begins."""

    def __init__(self, offset: int, most: int) -> None:
        super().__init__(offset, f"a script holds at most {most} statements, and here the next one begins")
