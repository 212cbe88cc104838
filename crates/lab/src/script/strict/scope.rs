//! What is known where a line stands: names and how large they are, generators, rounds. A child's names end with it.

use std::collections::BTreeSet;

use super::{Act, Label};
use crate::script::names::{MOST_NAMES, MOST_SEEDS};
use crate::script::program::{Accesses, Order, Part, What, Zipf};

/// Bytes of a region or file.
const SIZES: std::ops::RangeInclusive<u64> = 4096..=8 << 40;
/// Pages of which some are more popular.
const MOST_POPULAR: u64 = 131_072;

#[derive(Clone, Debug)]
struct Known {
    name: String,
    bytes: u64,
    is_file: bool,
}

/// A block that is open, and what was known when it began.
#[derive(Clone, Copy, Debug)]
struct Block {
    names: usize,
    is_child: bool,
    is_repeated: bool,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: Vec<Known>,
    seeds: BTreeSet<u64>,
    blocks: Vec<Block>,
}

/// The word of a line that begins a block.
pub(super) fn block(act: &Act) -> Option<&'static str> {
    Some(match act {
        Act::Fork { waits: true, .. } => "fork",
        Act::Fork { .. } => "spawn",
        Act::Repeat { .. } => "repeat",
        Act::For { .. } => "for",
        Act::Time { .. } => "time",
        Act::Does(_) | Act::Compute(_) | Act::Take(_) | Act::Mark { .. } => return None,
    })
}

impl Scope {
    pub(super) fn begin(&mut self, act: &Act) {
        let is_child = matches!(act, Act::Fork { .. });
        let is_repeated = matches!(act, Act::Repeat { .. } | Act::For { .. });
        self.blocks.push(Block { names: self.names.len(), is_child, is_repeated });
    }

    pub(super) fn end(&mut self) {
        if let Some(Block { names, is_child: true, .. }) = self.blocks.pop() {
            self.names.truncate(names);
        }
    }

    /// Holds a line against what is known, and remembers what it makes known.
    pub(super) fn check(&mut self, operation: &str, act: &Act) -> Result<(), String> {
        match act {
            Act::Does(What::Accesses(accesses)) => self.accesses(accesses, operation != "touch"),
            Act::Does(what) => self.operation(what),
            Act::Mark { label, .. } | Act::Time { label, .. } => self.label(label),
            Act::For { ms: 0, .. } => {
                Err("what goes on for 0 ms does nothing; a millisecond is the least".into())
            }
            Act::Compute(_) | Act::Take(_) | Act::Fork { .. } | Act::Repeat { .. } | Act::For { .. } => {
                Ok(())
            }
        }
    }

    fn label(&self, label: &Label) -> Result<(), String> {
        if label.0.contains('#') && !self.blocks.iter().any(|block| block.is_repeated) {
            return Err(
                "`#` in a label is the number of a round, and there is no `repeat` or `for` around it".into(),
            );
        }
        Ok(())
    }

    fn operation(&mut self, what: &What) -> Result<(), String> {
        match what {
            What::Map { name, bytes, .. } => self.make(name, *bytes, false),
            What::File { name, bytes } => self.make(name, *bytes, true),
            What::MapFile { name, file, .. } => {
                let Known { bytes, .. } = *self.known(file, Some(true))?;
                self.make(name, bytes, false)
            }
            What::Zipf(zipf) => self.zipf(zipf),
            What::Sync(name) => self.known(name, Some(true)).map(drop),
            What::Advise { name, part, .. } => self.part(name, *part, None).map(drop),
            What::Unmap { name, part, .. } | What::Lock { name, part, .. } => {
                self.part(name, *part, Some(false)).map(drop)
            }
            What::Policy { name: Some(name), .. } => self.known(name, Some(false)).map(drop),
            _ => Ok(()),
        }
    }

    /// A name for something new.
    fn make(&mut self, name: &str, bytes: u64, is_file: bool) -> Result<(), String> {
        let within = self.blocks.iter().rev().find(|block| block.is_child || block.is_repeated);
        if within.is_some_and(|block| block.is_repeated) {
            return Err(format!(
                "`{name}` would be made anew in each round; make it before `repeat` or `for`, or in a child (fork)"
            ));
        }
        if self.names.iter().any(|known| known.name == name) {
            return Err(format!("there is a `{name}` already; give this one another name"));
        }
        if name.contains('#') {
            return Err(format!("`{name}`: `#` may stand in labels alone"));
        }
        if !SIZES.contains(&bytes) {
            return Err(format!("`{name}` has {bytes} bytes, but may have from 4K to 8192G"));
        }
        if self.names.len() >= MOST_NAMES {
            return Err(format!("a process has at most {MOST_NAMES} names"));
        }
        self.names.push(Known { name: name.to_owned(), bytes, is_file });
        Ok(())
    }

    /// What is called so, a file or a region if it must be that.
    fn known(&self, name: &str, is_file: Option<bool>) -> Result<&Known, String> {
        let Some(known) = self.names.iter().find(|known| known.name == name) else {
            let names: Vec<&str> = self.names.iter().map(|known| known.name.as_str()).collect();
            let there = if names.is_empty() { "nothing yet".to_owned() } else { names.join(", ") };
            return Err(format!("nothing is called `{name}` here; there is {there}"));
        };
        match is_file {
            Some(true) if !known.is_file => Err(format!("`{name}` is memory; this is for a file")),
            Some(false) if known.is_file => Err(format!("`{name}` is a file; this is for memory (mapfile)")),
            _ => Ok(known),
        }
    }

    /// The bytes of `part`.
    fn part(&self, name: &str, part: Part, is_file: Option<bool>) -> Result<u64, String> {
        let bytes = self.known(name, is_file)?.bytes;
        let to = part.to.unwrap_or(bytes);
        if to > bytes || part.from > to || part.next.is_some_and(|next| next > bytes || next == 0) {
            return Err(format!("this is outside of `{name}`, which has {bytes} bytes"));
        }
        Ok(part.next.unwrap_or(to - part.from))
    }

    fn accesses(&mut self, accesses: &Accesses, is_file: bool) -> Result<(), String> {
        let Accesses { name, part, stride, block, order, .. } = accesses;
        self.part(name, *part, Some(is_file))?;
        if *stride == 0 || *block == 0 {
            return Err("a stride or block has at least a byte".into());
        }
        if let Order::Drawn(seed) = order {
            self.seed(*seed)?;
        }
        Ok(())
    }

    fn zipf(&mut self, zipf: &Zipf) -> Result<(), String> {
        let pages = self.part(&zipf.name, zipf.part, None)? / 4096;
        if !(1..=MOST_POPULAR).contains(&pages) {
            return Err(format!("zipf is over 1 to {MOST_POPULAR} pages, and this is over {pages}"));
        }
        if ![50, 100, 150].contains(&zipf.skew) {
            return Err(format!("a skew is 50, 100 or 150, not {}", zipf.skew));
        }
        self.seed(zipf.seed)
    }

    fn seed(&mut self, seed: u64) -> Result<(), String> {
        if seed == 0 {
            return Err("a seed is from 1 on: from 0 all draws are 0".into());
        }
        self.seeds.insert(seed);
        if self.seeds.len() > MOST_SEEDS {
            return Err(format!("a script has at most {MOST_SEEDS} seeds"));
        }
        Ok(())
    }
}
