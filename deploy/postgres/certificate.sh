#!/bin/bash
# Switches TLS on with a certificate of the server's own making, as MySQL does by itself. Tenants who want to know
# whom they talk to need one from an authority that they trust: put it in the place of this one.
# Options that the image's own script has too, which may source this one.
set -eo pipefail

openssl req -new -x509 -days 3650 -noenc -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
    -subj "/CN=$(hostname)" -out "$PGDATA/server.crt" -keyout "$PGDATA/server.key"
chmod 600 "$PGDATA/server.key"
# Here, not on the command line: the server that runs this script was started before there was a certificate.
echo "ssl = on" >> "$PGDATA/postgresql.conf"
