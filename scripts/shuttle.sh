#!/bin/sh
# Explores schedules of the allocator, its pages, its slabs and its address spaces, with shuttle. FREEHOLD_SHUTTLE_SCHEDULES: random
# schedules of each test (default 4000, and a quarter as many by PCT).
set -eu
cd "$(dirname "$0")/.."
RUSTFLAGS="--cfg shuttle" exec scripts/cargo test -p freehold-mm --test shuttle --test shuttle_slab --test shuttle_reclaim \
    --test shuttle_vm --test shuttle_khugepaged --test shuttle_compact --test shuttle_memcg \
    --target-dir target/shuttle -- "$@"
