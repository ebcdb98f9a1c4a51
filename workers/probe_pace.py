"""How fast a worker begins probes of receivers that hang.

Each costs a connection and its encryption, whether it is answered or not. Without a pace their cost would grow with the
number of receivers that hang, and be highest when many have just begun to.
"""

from time import monotonic


class ProbePace:
    """Allows so many probes a second, and at most those of one second at once. For one event loop; not thread-safe."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = max(per_second, 1.0)
        self._left = self._most
        self._counted_at = monotonic()

    @property
    def left(self) -> int:
        """How many may begin now."""
        now = monotonic()
        self._left = min(self._most, self._left + (now - self._counted_at) * self._per_second)
        self._counted_at = now
        return int(self._left)

    def take(self) -> None:
        """Counts a probe that begins."""
        self._left -= 1

    def give_back(self) -> None:
        """Gives back a probe that was answered. When all receivers answer again, the pace doesn't hold them up."""
        self._left += 1
