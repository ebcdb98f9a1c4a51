"""Taking a secret value out of an engine's message, however the engine quotes it."""

MASK = "***"
_IDENTIFYING = 8
"""So many characters of a value in a row are taken for a quotation of it."""
_SEARCHED = 10_000
"""Of a longer value, the whole and the pieces of its beginning: a megabyte of pieces would keep the worker busy."""


def hide(text: str, value: str) -> str:
    """Engines cut long values short, fold their case, double their quotes, and begin in the middle of them: any piece
    of the value goes that is long enough to identify it. Of a shorter value, all of it."""
    forms = {value, value.replace("'", "''"), value.replace("\\", "\\\\")}
    forms |= {form.replace("'", "''") for form in forms}
    if len(value) > _SEARCHED:
        for form in forms:
            text = text.replace(form, MASK)
        forms = {form[:_SEARCHED] for form in forms}
    size = min(_IDENTIFYING, len(value))
    pieces = {form[at : at + size] for form in map(_folded, forms) for at in range(len(form) - size + 1)}
    folded = _folded(text)
    shown = 0
    result: list[str] = []
    for start, end in _runs(folded, pieces, size):
        result += [text[shown:start], MASK]
        shown = end
    return "".join([*result, text[shown:]])


def _runs(text: str, pieces: set[str], size: int) -> list[tuple[int, int]]:
    """Where pieces stand, those that overlap as one."""
    runs: list[tuple[int, int]] = []
    for at in range(len(text) - size + 1):
        if text[at : at + size] not in pieces:
            continue
        if runs and at < runs[-1][1]:
            runs[-1] = (runs[-1][0], at + size)
        else:
            runs.append((at, at + size))
    return runs


def _folded(text: str) -> str:
    """In lower case, and as long as before."""
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
