"""What is measured of a database over time."""

from enum import StrEnum


class MetricName(StrEnum):
    STORAGE_BYTES = "storage_bytes"
    CONNECTIONS = "connections"
    TRANSACTIONS = "transactions"
    ROWS_READ = "rows_read"
    ROWS_WRITTEN = "rows_written"
    CACHE_HIT_RATIO = "cache_hit_ratio"

    @property
    def unit(self) -> str:
        return _UNITS[self]


_UNITS = {
    MetricName.STORAGE_BYTES: "bytes",
    MetricName.CONNECTIONS: "connections",
    MetricName.TRANSACTIONS: "transactions",
    MetricName.ROWS_READ: "rows",
    MetricName.ROWS_WRITTEN: "rows",
    MetricName.CACHE_HIT_RATIO: "ratio",
}
