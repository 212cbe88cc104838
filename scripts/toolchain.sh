# Sourced by the scripts beside it: finds a Rust that is new enough. Debian, Ubuntu and rustup call theirs by different
# names, so that everything which needs cargo goes through scripts/cargo.

# The oldest Rust that this workspace builds with; the same as rust-version in Cargo.toml.
OLDEST_MINOR=85

# Prints the minor version of the rustc at $1, or 0 if it does not run.
rust_minor() {
    local version
    version=$("$1" --version 2>/dev/null) || version="rustc 0.0.0"
    version=${version#rustc }
    case $version in
        1.*) version=${version#1.}; printf '%s\n' "${version%%.*}" ;;
        *) echo 0 ;;
    esac
}

# Sets CARGO_BIN and RUSTC_BIN to the first pair that is new enough; fails if there is none.
find_rust() {
    local cargo rustc
    local candidates="cargo:rustc ${HOME:-/nonexistent}/.cargo/bin/cargo:${HOME:-/nonexistent}/.cargo/bin/rustc"
    # Ubuntu has packages with the version in their names, and in those of their programs.
    for cargo in $(ls /usr/bin/cargo-1.* 2>/dev/null | sort -rV); do
        candidates="$candidates $cargo:/usr/bin/rustc-${cargo#/usr/bin/cargo-}"
    done
    for pair in $candidates; do
        cargo=${pair%%:*} rustc=${pair#*:}
        if command -v "$cargo" >/dev/null && [ "$(rust_minor "$rustc")" -ge "$OLDEST_MINOR" ]; then
            CARGO_BIN=$(command -v "$cargo") RUSTC_BIN=$(command -v "$rustc")
            return 0
        fi
    done
    return 1
}

# Whether cargo is rustup's, which can fetch other toolchains.
has_rustup() { command -v rustup >/dev/null || [ -x "${HOME:-/nonexistent}/.cargo/bin/rustup" ]; }
rustup_bin() { command -v rustup || echo "${HOME:-/nonexistent}/.cargo/bin/rustup"; }
