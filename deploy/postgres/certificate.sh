#!/bin/bash
# Switches TLS on with the installation's certificate, or, where .env holds none, with one of the server's own making,
# which proves nothing to anybody.
# Options that the image's own script has too, which may source this one.
set -eo pipefail

if [[ -n ${ENGINE_CERTIFICATE:-} ]]; then
    base64 -d <<< "$ENGINE_CERTIFICATE" > "$PGDATA/server.crt"
    (umask 077 && base64 -d <<< "$ENGINE_CERTIFICATE_KEY" > "$PGDATA/server.key")
else
    openssl req -new -x509 -days 3650 -noenc -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
        -subj "/CN=$(hostname)" -out "$PGDATA/server.crt" -keyout "$PGDATA/server.key"
fi
chmod 600 "$PGDATA/server.key"
# Here, not on the command line: the server that runs this script was started before there was a certificate.
echo "ssl = on" >> "$PGDATA/postgresql.conf"
