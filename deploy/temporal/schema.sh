#!/bin/sh
# Brings Temporal's own databases to the schema of this image's version. Each step skips what is there.
set -eu

for database in temporal temporal_visibility; do
    directory=/etc/temporal/schema/postgresql/v12/${database#temporal_}/versioned
    temporal-sql-tool --db "$database" create
    temporal-sql-tool --db "$database" setup-schema -v 0.0
    temporal-sql-tool --db "$database" update-schema -d "$directory"
done
