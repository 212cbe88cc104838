#!/bin/sh
# The stress run of crates/host under ThreadSanitizer. Needs a nightly toolchain; with its rust-src component the
# standard library is instrumented too, without it the races inside of std are suppressed by a list.
# FREEHOLD_STRESS_OPERATIONS: operations of each thread (default 10000).
set -eu
cd "$(dirname "$0")/.."

toolchain=${FREEHOLD_NIGHTLY:-nightly}
if ! rustc "+$toolchain" --version >/dev/null 2>&1; then
    echo "tsan: no toolchain '$toolchain'; install it with: rustup toolchain install nightly --component rust-src" >&2
    exit 2
fi
host=$(rustc "+$toolchain" -vV | sed -n 's/^host: //p')
std=$(rustc "+$toolchain" --print sysroot)/lib/rustlib/src/rust/library/std
[ -d "$std" ] || rustup component add rust-src --toolchain "$toolchain" >/dev/null 2>&1 || true

export FREEHOLD_STRESS_OPERATIONS="${FREEHOLD_STRESS_OPERATIONS:-10000}"
if [ -d "$std" ]; then
    RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" \
        exec cargo "+$toolchain" test -Zbuild-std --target "$host" --target-dir target/tsan \
        -p freehold-host --test stress --test host --test objects -- --test-threads=1 "$@"
fi
echo "tsan: no rust-src; std is not instrumented, its own races are suppressed" >&2
RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/tsan.suppressions" \
    exec cargo "+$toolchain" test --target "$host" --target-dir target/tsan-plain \
    -p freehold-host --test stress --test host --test objects -- --test-threads=1 "$@"
