"""Lists of names, written as they are read: apart by blanks."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
