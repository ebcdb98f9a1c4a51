#!/bin/sh
# Registers this installation's engine hosts, each once, and publishes the blueprints that come with Headwater. A host
# that is registered is left as it is: adding it again would set the capacities anew that an operator has given it.
set -eu

known=$(headwater hosts list --json)

# The policy of a certificate that this installation's own authority signed, or that nobody has.
set -- --tls require
if [ -n "${ENGINE_CA:-}" ]; then
    ca=$(mktemp)
    trap 'rm -f "$ca"' EXIT
    printf '%s' "$ENGINE_CA" | base64 -d > "$ca"
    set -- --tls verify-full --ca "$ca"
fi

register() { # engine, public port, administrator's DSN, TLS options
    if printf '%s' "$known" | python -c '
import json, sys
engine, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
found = any((one["engine"], one["host"], one["port"]) == (engine, host, port) for one in json.load(sys.stdin))
sys.exit(0 if found else 1)
' "$1" "$ENGINE_PUBLIC_HOST" "$2"; then
        echo "$1 host $ENGINE_PUBLIC_HOST:$2 is registered"
        return
    fi
    engine=$1 port=$2 dsn=$3
    shift 3
    printf '%s' "$dsn" | headwater hosts add --engine "$engine" --region "$ENGINE_REGION" --dsn-file - \
        --public-host "$ENGINE_PUBLIC_HOST" --public-port "$port" "$@"
}

register postgres "$POSTGRES_PUBLIC_PORT" "$POSTGRES_ADMIN_DSN" "$@"
register mysql "$MYSQL_PUBLIC_PORT" "$MYSQL_ADMIN_DSN" "$@"
headwater blueprints ship
