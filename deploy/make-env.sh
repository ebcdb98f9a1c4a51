#!/bin/sh
# Writes .env from .env.example: fresh secrets, the name under which tenants reach the engine hosts, and the name of the
# API and the console if there is one. Never writes over a .env that is there: the keys in it are all that opens what is
# stored.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: deploy/make-env.sh ENGINE_HOST [API_HOST]" >&2
    exit 2
fi
case ${2:-} in
    *[!A-Za-z0-9.-]*) echo "API_HOST is a name or an address, without scheme and port" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
umask 077

random_hex() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
random_key() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }

command -v openssl > /dev/null || { echo "openssl is missing: it makes the engine hosts' certificate" >&2; exit 1; }

draft=.env.draft.$$
work=$(mktemp -d)
trap 'rm -rf "$draft" "$work"' EXIT

# An authority that signs this once and whose key is thrown away. Ten years: tenants keep its certificate. Chained,
# because whoever asks how it ended (||) switches `set -e` off in it.
certificate() {
    case $1 in
        *[!0-9.]*) san="DNS:$1" ;;
        *) san="IP:$1" ;;
    esac
    openssl req -new -x509 -days 3650 -noenc -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
        -subj "/CN=Headwater engine hosts" -addext "basicConstraints=critical,CA:TRUE" \
        -addext "keyUsage=critical,keyCertSign" -out "$work/ca.crt" -keyout "$work/ca.key" &&
    openssl req -new -noenc -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj "/CN=Headwater engine host" \
        -out "$work/host.csr" -keyout "$work/host.key" &&
    printf 'subjectAltName=%s,DNS:postgres-us-east-1,DNS:mysql-us-east-1\nbasicConstraints=CA:FALSE\n' "$san" \
        > "$work/host.ext" &&
    openssl x509 -req -days 3650 -in "$work/host.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial \
        -extfile "$work/host.ext" -out "$work/host.crt" &&
    rm "$work/ca.key"
}
certificate "$1" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
in_one_line() { base64 < "$1" | tr -d '\n'; }
while IFS= read -r line; do
    case $line in
        ENGINE_PUBLIC_HOST=) echo "$line$1" ;;
        "# PUBLIC_HOST="*) if [ -n "${2:-}" ]; then echo "PUBLIC_HOST=$2"; else echo "$line"; fi ;;
        ENGINE_CA=) echo "$line$(in_one_line "$work/ca.crt")" ;;
        ENGINE_CERTIFICATE=) echo "$line$(in_one_line "$work/host.crt")" ;;
        ENGINE_CERTIFICATE_KEY=) echo "$line$(in_one_line "$work/host.key")" ;;
        SECRET_KEYS=) echo "${line}k1:$(random_key)" ;;
        *_PASSWORD=) echo "$line$(random_hex)" ;;
        *) echo "$line" ;;
    esac
done < .env.example > "$draft"

# A link, which fails where .env exists: whole or not at all, whatever dies and whoever runs this at the same time.
ln "$draft" .env
echo ".env is written" >&2
