"""Taking secret values out of an engine's messages, however the engine quotes them."""

from collections.abc import Iterable, Mapping, Set

MASK = "***"
_IDENTIFYING = 8
"""How many characters of a value in a row are taken for a quotation of it."""
_SEARCHED = 10_000
"""Characters of a value that are searched for in pieces; of a longer value, the whole, and the pieces of its beginning:
a megabyte of pieces would keep the worker busy."""
_SEARCHED_TOGETHER = 50_000
"""The same for all values of an application together, which has the pieces in memory as long as it runs: long values
share what the short ones leave."""


class Secrets:
    """The secret values of one application. Making this takes time in proportion to their length; hiding them in a
    message, in proportion to the message's length alone: a script may have thousands of statements that fail."""

    def __init__(self, values: Iterable[str]) -> None:
        given = [value for value in values if value]
        most = _share([len(value) for value in given])
        self._whole: list[str] = []
        """Values of which not all pieces are searched."""
        self._pieces: dict[int, set[str]] = {}
        """The pieces that are searched for, by their length."""
        for value in given:
            forms = _forms(value)
            if len(value) > most:
                self._whole += forms
                forms = {form[:most] for form in forms}
            size = min(_IDENTIFYING, len(value))
            pieces = self._pieces.setdefault(size, set())
            for form in map(_folded, forms):
                pieces.update(form[at : at + size] for at in range(len(form) - size + 1))

    def hide(self, text: str) -> str:
        """Replaces secret values by `***`. Engines cut long values short, fold their case, double their quotes, and
        begin in the middle of them: so any piece of a value is replaced that is long enough to identify it. Of a
        shorter value, only the whole is."""
        for form in self._whole:
            text = text.replace(form, MASK)
        shown = 0
        result: list[str] = []
        for start, end in _runs(_folded(text), self._pieces):
            result += [text[shown:start], MASK]
            shown = end
        return "".join([*result, text[shown:]])


def _forms(value: str) -> set[str]:
    forms = {value, value.replace("'", "''"), value.replace("\\", "\\\\")}
    return forms | {form.replace("'", "''") for form in forms}


def _share(lengths: list[int]) -> int:
    """The most characters of a value that are searched for in pieces."""
    left = _SEARCHED_TOGETHER
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return min(share, _SEARCHED)
        left -= length
    return _SEARCHED


def _runs(text: str, pieces: Mapping[int, Set[str]]) -> list[tuple[int, int]]:
    """Where pieces stand, each as its start and end; pieces that overlap count as one."""
    found = sorted(
        (at, at + size)
        for size, known in pieces.items()
        for at in range(len(text) - size + 1)
        if text[at : at + size] in known
    )
    runs: list[tuple[int, int]] = []
    for start, end in found:
        if runs and start < runs[-1][1]:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        else:
            runs.append((start, end))
    return runs


def _folded(text: str) -> str:
    """The text in lower case, and as long as before."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
