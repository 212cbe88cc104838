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

/// One look at a process.
#[derive(Clone, Debug)]
pub(crate) struct AccessedRound {
    pub(crate) pid: u32,
    /// CPU time that the process had from clearing to looking, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) cleared: Cleared,
    pub(crate) mappings: Vec<Mapping>,
    /// What was read of those with private pages; not in every round.
    pub(crate) contents: Vec<Contents>,
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
        let origin = Origin { time: self.counts().last_time, pid: round.pid, tid: round.pid, cpu: 0 };
        for mapping in &round.mappings {
            if let Some(kind) = event(mapping, round) {
                self.write(origin, task, kind)?;
            }
        }
        for &Contents { address, read, zeros } in &round.contents {
            let kind = EventKind::Present { address, kind: PresentKind::Read, pages: read, zeros };
            self.write(origin, task, kind)?;
        }
        Ok(())
    }
}

/// What is written of a mapping; `None` of one with next to nothing in it.
fn event(mapping: &Mapping, round: &AccessedRound) -> Option<EventKind> {
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
        let round =
            |cpu_ns, cleared| AccessedRound { pid: 1, cpu_ns, cleared, mappings: vec![], contents: vec![] };
        let just_now = round(u64::MAX, Cleared::ForThis);
        assert_eq!(event(&mapping, &just_now), Some(wanted));
        assert_eq!(event(&Mapping { resident_kib: 60, ..mapping.clone() }, &just_now), None);
        let since = event(&mapping, &round(7, Cleared::Before)).unwrap();
        assert!(matches!(since, EventKind::AccessedSince { accessed: 10, cpu_ns: 7, .. }), "{since:?}");
    }
}
