"""What the ledger has to say, by a model that remembers every change and adds up at the end."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

PERIOD = 3600
Key = tuple[UUID, datetime]
"""A database, and the beginning of a period."""
Sums = tuple[int, int, int]
"""Seconds of runtime, byte-seconds of storage, byte-seconds of backups."""


@dataclass
class Rates:
    running: bool = False
    storage: int = 0
    backups: int = 0


@dataclass
class LedgerModel:
    """Moments are whole seconds since the epoch."""

    now: int
    period: int = PERIOD
    changes: dict[UUID, list[tuple[int, Rates]]] = field(default_factory=lambda: defaultdict(list))

    def rates(self, database: UUID) -> Rates:
        known = self.changes[database]
        return known[-1][1] if known else Rates()

    def change(self, database: UUID, **rates: int | bool) -> None:
        """From now on."""
        self.changes[database].append((self.now, Rates(**{**vars(self.rates(database)), **rates})))

    def usage(self, until: int) -> dict[Key, Sums]:
        """Of each database and period, what is not nothing."""
        sums: dict[Key, list[int]] = defaultdict(lambda: [0, 0, 0])
        for database, changes in self.changes.items():
            ends = [*(at for at, _ in changes[1:]), until]
            for (since, rates), end in zip(changes, ends, strict=True):
                for period, seconds in _periods(since, min(end, until), self.period):
                    row = sums[database, datetime.fromtimestamp(period, UTC)]
                    row[0] += seconds * rates.running
                    row[1] += seconds * rates.storage
                    row[2] += seconds * rates.backups
        return {key: (a, b, c) for key, (a, b, c) in sums.items() if a or b or c}


def _periods(since: int, until: int, length: int) -> Iterator[tuple[int, int]]:
    """The periods that lie between, at least in part, each with its seconds."""
    while since < until:
        begin = since - since % length
        end = min(begin + length, until)
        yield begin, end - since
        since = end
