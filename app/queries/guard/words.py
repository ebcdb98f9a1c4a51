"""Lists of names, as they are written here."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
