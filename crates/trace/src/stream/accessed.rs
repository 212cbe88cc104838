//! What a look at accessed bits has found, and what it has read of private pages, as events.

use std::io::{self, Write};

use super::assemble::Assembler;
use super::record::Origin;
use crate::event::{EventKind, PresentKind};
use crate::heat::Mapping;

/// Mappings with less resident have no event.
const FEW_PAGES: u32 = 16;

/// When the bits were cleared that a look has found set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cleared {
    /// For this look.
    ForThis,
    /// In a round before, with all that was used between the two.
    Before,
}

/// Something that was found out about a process's accessed bits.
#[derive(Clone, Debug)]
pub(crate) struct AccessedRound {
    pub(crate) pid: u32,
    /// When, ns on the clock of events.
    pub(crate) at_ns: u64,
    pub(crate) found: Found,
}

/// What was found out.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// How many pages of each mapping were accessed.
    ByMapping(FoundByMapping),
    /// All bits were cleared, and nothing is known yet.
    Cleared,
    /// Which pages were accessed.
    ByPage(FoundByPage),
}

/// How many pages of each mapping were accessed.
#[derive(Clone, Debug)]
pub(crate) struct FoundByMapping {
    /// CPU time that the process had from clearing to looking, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) cleared: Cleared,
    pub(crate) mappings: Vec<Mapping>,
    /// What was read of those with private pages; not in every round.
    pub(crate) contents: Vec<Contents>,
}

/// Which pages were accessed since the look before, or since clearing.
#[derive(Clone, Debug)]
pub(crate) struct FoundByPage {
    /// Time since clearing, µs.
    pub(crate) passed_us: u32,
    /// CPU time that the process has had in it, as far as the kernel knows it, µs.
    pub(crate) cpu_us: u32,
    pub(crate) used: Vec<UsedPages>,
}

/// Of the 64 pages from an address on, those that were accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UsedPages {
    pub(crate) address: u64,
    /// The lowest bit is the first page's.
    pub(crate) bits: u64,
}

impl AccessedRound {
    /// Of what was found just now.
    pub(crate) fn new(pid: u32, found: Found) -> Self {
        Self { pid, at_ns: crate::capture::host::now_ns(), found }
    }
}

/// What private pages of a mapping hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contents {
    pub(crate) address: u64,
    /// How many were read.
    pub(crate) read: u32,
    /// How many of those hold nothing but zeros.
    pub(crate) zeros: u32,
}

impl<W: Write> Assembler<W> {
    /// Writes what a round has found, on the time of the process's first thread.
    ///
    /// # Errors
    /// What the output says.
    pub(crate) fn accessed(&mut self, round: &AccessedRound) -> io::Result<()> {
        if !self.is_recorded(round.pid) {
            return Ok(());
        }
        let Some(task) = self.look_up(round.pid) else { return Ok(()) };
        let time = self.counts().last_time.max(round.at_ns);
        let origin = Origin { time, pid: round.pid, tid: round.pid, cpu: 0 };
        events(&round.found).try_for_each(|kind| self.write(origin, task, kind))
    }
}

/// What is written of it.
fn events(found: &Found) -> Box<dyn Iterator<Item = EventKind> + '_> {
    let looked = |passed_us, cpu_us| EventKind::Present {
        address: 0,
        kind: PresentKind::Looked,
        pages: passed_us,
        zeros: cpu_us,
    };
    match found {
        Found::Cleared => Box::new(std::iter::once(looked(0, 0))),
        Found::ByPage(found) => {
            // Nothing may be taken for clearing.
            let head = looked(found.passed_us.max(1), found.cpu_us);
            Box::new(std::iter::once(head).chain(found.used.iter().map(used_pages)))
        }
        Found::ByMapping(found) => {
            let read = found.contents.iter().map(|&Contents { address, read, zeros }| EventKind::Present {
                address,
                kind: PresentKind::Read,
                pages: read,
                zeros,
            });
            Box::new(found.mappings.iter().filter_map(|mapping| event(mapping, found)).chain(read))
        }
    }
}

fn used_pages(used: &UsedPages) -> EventKind {
    let (pages, zeros) = (used.bits as u32, (used.bits >> 32) as u32);
    EventKind::Present { address: used.address, kind: PresentKind::Used, pages, zeros }
}

/// What is written of a mapping; `None` of one with next to nothing in it.
fn event(mapping: &Mapping, round: &FoundByMapping) -> Option<EventKind> {
    let number = |of: u64| u32::try_from(of).unwrap_or(u32::MAX);
    let resident = number(mapping.resident_kib / 4);
    let (address, accessed) = (mapping.start, number(mapping.accessed_kib / 4));
    let (pages, cpu_ns) = (number((mapping.end - mapping.start) >> 12), number(round.cpu_ns));
    let huge = number(mapping.huge_kib / 4).min(resident);
    (resident >= FEW_PAGES).then_some(match round.cleared {
        Cleared::ForThis => EventKind::Accessed { address, accessed, pages, cpu_ns, resident, huge },
        Cleared::Before => EventKind::AccessedSince { address, accessed, pages, cpu_ns, resident, huge },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_with_little_in_them_have_no_event() {
        let mapping = Mapping {
            start: 0x1000,
            end: 0x10_1000,
            resident_kib: 512,
            accessed_kib: 40,
            huge_kib: 9999,
            ..Mapping::default()
        };
        let wanted = EventKind::Accessed {
            address: 0x1000,
            accessed: 10,
            pages: 256,
            cpu_ns: u32::MAX,
            resident: 128,
            huge: 128,
        };
        let round = |cpu_ns, cleared| FoundByMapping { cpu_ns, cleared, mappings: vec![], contents: vec![] };
        let just_now = round(u64::MAX, Cleared::ForThis);
        assert_eq!(event(&mapping, &just_now), Some(wanted));
        assert_eq!(event(&Mapping { resident_kib: 60, ..mapping.clone() }, &just_now), None);
        let since = event(&mapping, &round(7, Cleared::Before)).unwrap();
        assert!(matches!(since, EventKind::AccessedSince { accessed: 10, cpu_ns: 7, .. }), "{since:?}");
    }

    #[test]
    fn pages_are_told_by_64() {
        let used = vec![UsedPages { address: 0x7000, bits: 1 << 63 | 5 }];
        let found = Found::ByPage(FoundByPage { passed_us: 0, cpu_us: 9, used });
        let present = |address, kind, pages, zeros| EventKind::Present { address, kind, pages, zeros };
        let told: Vec<EventKind> = events(&found).collect();
        let pages = present(0x7000, PresentKind::Used, 5, 1 << 31);
        assert_eq!(told, [present(0, PresentKind::Looked, 1, 9), pages]);
        let cleared: Vec<EventKind> = events(&Found::Cleared).collect();
        assert_eq!(cleared, [present(0, PresentKind::Looked, 0, 0)]);
    }
}
