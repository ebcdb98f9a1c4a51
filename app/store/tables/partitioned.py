"""Tables whose rows go by age, a partition at a time. Piccolo knows no such tables: migrations make them by SQL."""

from app.store.partitions import PartitionedTable, Span

METRIC_SAMPLES = PartitionedTable(tablename="metric_samples", span=Span.DAY)
"""One row for each sample of a database: its gauges, and what its counters grew by since the sample before."""
METRIC_FIVE_MINUTES = PartitionedTable(tablename="metric_five_minutes", span=Span.DAY)
"""The same in steps of five minutes: the highest of each gauge, and the sum of each counter."""
METRIC_HOURS = PartitionedTable(tablename="metric_hours", span=Span.MONTH)
METRIC_GAPS = PartitionedTable(tablename="metric_gaps", span=Span.MONTH)
"""What lies between two samples that can't be compared."""
