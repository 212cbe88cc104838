//! Address spaces of recorded programs, as they come and go: what of them is resident is looked at from outside.

use std::sync::{Arc, Weak};

use mm::vm::AddressSpace;
use sim::SimMachine;

/// All that live, and the names of those who began in them.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    live: Vec<(Weak<AddressSpace<SimMachine>>, Option<usize>)>,
    names: Vec<String>,
}

impl Spaces {
    /// There is one more.
    pub(super) fn add(&mut self, space: &Arc<AddressSpace<SimMachine>>) {
        self.live.retain(|(space, _)| space.strong_count() > 0);
        self.live.push((Arc::downgrade(space), None));
    }

    /// A task that is called `name` began in `space`; who was there first has named it.
    pub(super) fn name(&mut self, space: &Arc<AddressSpace<SimMachine>>, name: &str) {
        let is_it = |(live, _): &&mut (Weak<_>, _)| std::ptr::eq(live.as_ptr(), Arc::as_ptr(space));
        let Some((_, named)) = self.live.iter_mut().rev().find(is_it) else { return };
        if named.is_none() {
            let known = self.names.iter().position(|known| known == name);
            *named = Some(known.unwrap_or_else(|| {
                self.names.push(name.to_owned());
                self.names.len() - 1
            }));
        }
    }

    /// Resident pages of all, shared ones in each, and of those of each name so far.
    pub(super) fn resident_pages(&self) -> (u64, Vec<u64>) {
        let (mut all, mut by_name) = (0, vec![0; self.names.len()]);
        for (space, name) in &self.live {
            let pages = space.upgrade().map_or(0, |space| space.resident_pages());
            all += pages;
            if let Some(name) = name {
                by_name[*name] += pages;
            }
        }
        (all, by_name)
    }

    /// The names so far.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}
