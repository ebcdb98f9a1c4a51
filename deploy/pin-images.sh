#!/bin/sh
# Pins the images of docker-compose.yml and Dockerfile: asks the registry for the digest of each, and writes
# NAME=image:tag@sha256:… lines to .env, which Compose takes instead of the tags in the file. All or none; what else
# stands in .env stays. An image that .env names already stays too, and gets the digest that its tag has now.
set -eu

fail() { echo "$1" >&2; exit 1; }

cd "$(dirname "$0")/.."
umask 077
[ -f .env ] || fail "there is no .env yet: deploy/make-env.sh writes it"
command -v docker > /dev/null || fail "docker is missing: it asks the registry for the digests"

env_file=$(readlink -f .env)
draft=$env_file.draft.$$
trap 'rm -f "$draft" "$draft.next"' EXIT
cp "$env_file" "$draft"

# As `NAME image:tag`, each once.
images() { sed -n 's/.*\${\([A-Z_]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' docker-compose.yml | sort -u; }
in_env() { sed -n "s/^$1=//p" "$draft" | tail -n 1; }

# The digest of the index, where an image is made for several platforms: the same line serves on each of them.
digest_of() {
    found=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1") \
        || fail "$1 can't be resolved: docker says why above"
    case $found in
        sha256:*) ;;
        *) fail "$1 can't be resolved: docker gives \"$found\" for its digest" ;;
    esac
    expr "$found" : 'sha256:[0-9a-f]\{64\}$' > /dev/null || fail "$1 can't be resolved: \"$found\" is no digest"
    echo "$found"
}

named=$(images)
[ -n "$named" ] || fail "docker-compose.yml names no image by a variable"
while read -r name default; do
    image=$(in_env "$name")
    image=${image%@*}
    if [ -n "$image" ] && [ "$image" != "$default" ]; then
        echo "$name: .env has $image, docker-compose.yml $default; without the line in .env the latter is pinned" >&2
    fi
    image=${image:-$default}
    pinned=$image@$(digest_of "$image")
    { grep -v "^$name=" "$draft" || true; echo "$name=$pinned"; } > "$draft.next"
    mv "$draft.next" "$draft"
    echo "$name=$pinned" >&2
done <<EOF
$named
EOF

# At once: .env is the old or the new one, whatever dies here.
mv "$draft" "$env_file"
echo ".env is written" >&2
