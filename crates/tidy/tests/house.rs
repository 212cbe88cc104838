//! This repository, held against the rules of the house.

use std::path::Path;

use freehold_tidy::rules::ALL;
use freehold_tidy::{Finding, Tree};

fn house() -> Tree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Tree::read(&root).expect("the repository")
}

#[test]
fn the_house_is_tidy() {
    let tree = house();
    let found: Vec<Finding> = ALL.iter().flat_map(|(_, rule)| rule(&tree)).collect();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn the_walk_sees_the_house() {
    let tree = house();
    for path in ["Makefile", "crates/mm/src/lib.rs", "crates/cli/Cargo.toml", "scripts/cargo"] {
        assert!(tree.files.iter().any(|file| file.path == path), "{path}");
    }
    assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
}

#[test]
fn every_rule_has_its_paragraph_in_contributing() {
    let tree = house();
    let contributing =
        tree.files.iter().find(|file| file.path == "CONTRIBUTING.md").expect("CONTRIBUTING.md");
    for (name, _) in ALL {
        assert!(contributing.text.contains(&format!("**{name}")), "{name} is not explained");
    }
}
