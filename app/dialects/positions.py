"""Where in a script something stands, in the words that people and editors use."""

from bisect import bisect_right


class Lines:
    """Lines and columns of one script, both counted from 1. A tab is one column."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        start = text.find("\n")
        while start != -1:
            self._starts.append(start + 1)
            start = text.find("\n", start + 1)

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        return offset - self._starts[self.line(offset) - 1] + 1

    def place(self, offset: int) -> str:
        """`line 3, column 14`."""
        return f"line {self.line(offset)}, column {self.column(offset)}"


class CodePoints:
    """Byte offsets of the UTF-8 form of a text as offsets in the text. Ask in rising order: each answer goes on
    from the one before."""

    def __init__(self, text: str) -> None:
        self._plain = text.isascii()
        self._bytes = b"" if self._plain else text.encode()
        self._byte = 0
        self._offset = 0

    def offset(self, byte: int) -> int:
        if self._plain:
            return byte
        if byte < self._byte:
            self._byte = self._offset = 0
        self._offset += len(self._bytes[self._byte : byte].decode())
        self._byte = byte
        return self._offset
