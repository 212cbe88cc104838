//! Puts the experiments of `experiments/` into the program, in the order that each file gives itself.

#[path = "../bundle.rs"]
mod bundle;

fn main() -> std::io::Result<()> {
    bundle::bundle("../../experiments", "experiments.rs", order)
}

/// What the file's key `order` says; those without one come last.
fn order(text: &str) -> u32 {
    let number = text.lines().find_map(|line| line.strip_prefix("order = "));
    number.and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}
