#!/bin/sh
# Makes the namespace, once. It keeps closed workflows for three days: as long as one is kept, Temporal itself
# refuses to run the same job again under its id.
set -eu

attempts=30
until temporal operator cluster health; do
    attempts=$((attempts - 1))
    test "$attempts" -gt 0 || exit 1
    sleep 1
done
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" > /dev/null 2>&1 \
    || temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 72h
