//! What a look at accessed bits has found, as events.

use std::io::{self, Write};

use super::assemble::Assembler;
use super::record::Origin;
use crate::event::EventKind;
use crate::heat::Mapping;

/// Mappings with less resident have no event.
const FEW_PAGES: u32 = 16;

/// One look at a process.
#[derive(Clone, Debug)]
pub(crate) struct AccessedRound {
    pub(crate) pid: u32,
    /// CPU time that the process had from clearing to looking, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) mappings: Vec<Mapping>,
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
            if let Some(kind) = event(mapping, round.cpu_ns) {
                self.write(origin, task, kind)?;
            }
        }
        Ok(())
    }
}

/// What is written of a mapping; `None` of one with next to nothing in it.
fn event(mapping: &Mapping, cpu_ns: u64) -> Option<EventKind> {
    let pages = |kib: u64| u32::try_from(kib / 4).unwrap_or(u32::MAX);
    let resident = pages(mapping.resident_kib);
    (resident >= FEW_PAGES).then(|| EventKind::Accessed {
        address: mapping.start,
        accessed: pages(mapping.accessed_kib),
        pages: pages((mapping.end - mapping.start) >> 10),
        cpu_ns: u32::try_from(cpu_ns).unwrap_or(u32::MAX),
        resident,
        huge: pages(mapping.huge_kib).min(resident),
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
        assert_eq!(event(&mapping, u64::MAX), Some(wanted));
        assert_eq!(event(&Mapping { resident_kib: 60, ..mapping }, 1), None);
    }
}
