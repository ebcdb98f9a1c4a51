#!/bin/sh
# Registers this installation's engine hosts, each once, and publishes the blueprints that come with Headwater. A host
# that is registered is left as it is: adding it again would end the draining that an operator has asked for.
set -eu

known=$(headwater hosts list --json)

register() { # engine, public port, administrator's DSN
    if printf '%s' "$known" | python -c '
import json, sys
engine, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
found = any((one["engine"], one["host"], one["port"]) == (engine, host, port) for one in json.load(sys.stdin))
sys.exit(0 if found else 1)
' "$1" "$ENGINE_PUBLIC_HOST" "$2"; then
        echo "$1 host $ENGINE_PUBLIC_HOST:$2 is registered"
        return
    fi
    headwater hosts add --engine "$1" --region "$ENGINE_REGION" --admin-dsn "$3" \
        --public-host "$ENGINE_PUBLIC_HOST" --public-port "$2"
}

register postgres "$POSTGRES_PUBLIC_PORT" "$POSTGRES_ADMIN_DSN"
register mysql "$MYSQL_PUBLIC_PORT" "$MYSQL_ADMIN_DSN"
headwater blueprints ship
