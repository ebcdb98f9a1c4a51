#!/bin/sh
# Writes .env from .env.example: fresh secrets, and the name under which tenants reach the engine hosts. Never writes
# over a .env that is there: the keys in it are all that opens what is stored.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: deploy/make-env.sh PUBLIC_HOST" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
umask 077

random_hex() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
random_key() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }

draft=.env.draft.$$
trap 'rm -f "$draft"' EXIT
while IFS= read -r line; do
    case $line in
        ENGINE_PUBLIC_HOST=) echo "$line$1" ;;
        SECRET_KEYS=) echo "${line}k1:$(random_key)" ;;
        *_PASSWORD=) echo "$line$(random_hex)" ;;
        *) echo "$line" ;;
    esac
done < .env.example > "$draft"

# A link, which fails where .env exists: whole or not at all, whatever dies and whoever runs this at the same time.
ln "$draft" .env
echo ".env is written" >&2
