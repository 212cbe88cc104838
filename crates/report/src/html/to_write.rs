//! What to write on the machine itself, a block for each variant that sets something.

use lab::measurements::{Group, Scene};
use serde::Serialize;

use crate::to_set;

/// Lines for a root shell.
#[derive(Serialize, PartialEq, Eq)]
pub(super) struct Commands {
    /// The variant; empty where there is only one.
    name: String,
    lines: String,
}

/// Of all variants but the first of each scene, which is what they are compared with; each block once.
pub(super) fn commands(scenes: &[Scene<'_>]) -> Vec<Commands> {
    let mut all: Vec<Commands> = vec![];
    for group in scenes.iter().flat_map(candidates) {
        let lines = to_set::lines(group.first()).join("\n");
        if !lines.is_empty() && !all.iter().any(|of| of.lines == lines) {
            all.push(Commands { name: group.label.clone(), lines });
        }
    }
    if let [only] = all.as_mut_slice() {
        only.name.clear();
    }
    all
}

fn candidates<'a, 'b>(scene: &'b Scene<'a>) -> &'b [Group<'a>] {
    &scene.groups[usize::from(scene.groups.len() > 1)..]
}
