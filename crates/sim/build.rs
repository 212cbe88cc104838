//! Puts the profiles of `machines/` into the program.

#[path = "../bundle.rs"]
mod bundle;

fn main() -> std::io::Result<()> {
    bundle::bundle("../../machines", "machines.rs", |_| 0)
}
