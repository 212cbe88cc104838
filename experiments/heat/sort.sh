#!/bin/sh
# Forty million numbers in random order, sorted in memory by one thread.
set -e
file=$(mktemp)
trap 'rm -f "$file"' EXIT
seq 40000000 | shuf >"$file"
sort -S 4G --parallel=1 "$file" >/dev/null
