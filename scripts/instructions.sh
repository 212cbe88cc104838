#!/bin/sh
# Instructions of mm's hot paths, counted by callgrind: of a page pair, a large block's, 512 pages that go through refills and
# drains, an object's pair, 512 objects that go through slabs or sheaves. Each is the difference of two runs, so start-up is not
# in it. To compare revisions, run it in both. POLICIES: which (default linux-6.18 linux-7.2 freehold).
set -eu
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "instructions: apt-get install valgrind, as root" >&2; exit 1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends valgrind
fi
target=${CARGO_TARGET_DIR:-target}
scripts/cargo build --locked --quiet --release -p freehold-mm --example paths
collected() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$target/release/examples/paths" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}
for policy in ${POLICIES:-linux-6.18 linux-7.2 freehold}; do
    for path in pair buddy batch object objects; do
        case $path in batch | objects) count=40 ;; *) count=2000 ;; esac
        once=$(collected "$path" "$count" "$policy")
        twice=$(collected "$path" "$((2 * count))" "$policy")
        echo "$policy $path $(((twice - once) / count)) instructions"
    done
done
