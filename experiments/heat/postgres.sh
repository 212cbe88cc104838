#!/bin/sh
# PostgreSQL with 512 MiB of shared buffers and one client: 2,500,000 accounts (some 320 MB), nine transactions of ten look
# one up, the tenth changes one; which one goes by Zipf's law. Runs until it is asked to end, as a user other than root.
set -e
dir=$(mktemp -d)
trap 'trap "" TERM; kill -INT $server 2>/dev/null; wait $server; rm -rf "$dir"' EXIT
trap 'exit 0' TERM
initdb -D "$dir" -A trust --no-sync >/dev/null
cat >>"$dir/postgresql.conf" <<END
shared_buffers = 512MB
huge_pages = off
listen_addresses = ''
unix_socket_directories = '$dir'
END
# In the foreground: pg_ctl's server would be nobody's child.
postgres -D "$dir" >"$dir/log" 2>&1 &
server=$!
until pg_isready -q -h "$dir"; do sleep 0.1; done
pgbench -h "$dir" -i -s 25 -q postgres 2>/dev/null
pgbench -h "$dir" -n -s 25 -T 3600 -f experiments/heat/lookup.sql@9 -f experiments/heat/bank.sql@1 postgres >/dev/null &
wait $!
