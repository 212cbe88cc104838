//! The kernel's paths, and a free lock.

use super::ProbeRun;
use crate::probe::kernel::Faults;
use crate::probe::loops::bytes_beyond;
use crate::probe::pair::CpuPair;
use crate::probe::{Result, forks, kernel, pair};

/// What is measured of faults.
const FAULT_KEYS: [&str; 5] =
    ["path.fault_ns", "path.exception_ns", "path.shared_fault_ns", "path.unmap_ns", "path.truncate_ns"];

impl ProbeRun<'_> {
    pub(super) fn lock(&mut self) {
        let samples = self.at_home(|_| pair::lock());
        let how = "compare-and-exchange and store, over and over, on a line that the CPU has";
        self.offer("cpu.lock_ns", samples, how);
    }

    pub(super) fn paths(&mut self) {
        let syscall = self.at_home(|_| kernel::syscall());
        self.offer("path.syscall_ns", syscall, "getppid, over and over");
        self.faults();
        let pipe = self.at_home(|_| kernel::pipe()).and_then(|pipe| pipe).map(|pipe| pipe.median());
        self.switch(&pipe);
        self.wakeup(&pipe);
    }

    fn faults(&mut self) {
        let faults = match self.at_home(|_| kernel::faults()).and_then(|faults| faults) {
            Ok(faults) => faults,
            Err(why) => {
                return FAULT_KEYS.into_iter().for_each(|key| self.lack(key, why.clone()));
            }
        };
        let clear = faults.clear.median();
        for (key, whole, what) in [
            ("path.fault_ns", &faults.private, "private anonymous memory"),
            ("path.shared_fault_ns", &faults.shared, "shared anonymous memory, whose file had none"),
        ] {
            let how = format!(
                "first write to a page of {what}, 128 in a row that were just given back: {:.0} ns, less {clear:.0} ns to \
                 clear it in cache; taking it from a CPU's list is in it",
                whole.median()
            );
            self.add(key, &whole.map(|ns| (ns - clear).max(0.0)), how);
        }
        self.exception(&faults);
        let unmapped = faults.unmapped.median();
        let how = "MADV_DONTNEED on shared anonymous memory, whose file keeps the pages; 128 in a row";
        self.add("path.unmap_ns", &faults.unmapped, how);
        let gone = faults.private_gone.median();
        let freeing = (gone - unmapped).max(0.0);
        let how = format!(
            "MADV_REMOVE on shared anonymous memory, 128 pages in a row: {:.0} ns, less {freeing:.0} ns for freeing, which \
             is what MADV_DONTNEED takes longer on private memory ({gone:.0} ns)",
            faults.truncated.median()
        );
        self.add("path.truncate_ns", &faults.truncated.map(|ns| (ns - freeing).max(0.0)), how);
    }

    /// Some rounds of pages that come and go.
    pub(super) fn pages(&mut self) {
        let bytes = self.round_bytes();
        let mut rounds = std::mem::take(&mut self.rounds);
        let went = self.at_home(|_| rounds.go_on(bytes)).and_then(|went| went);
        self.rounds = rounds;
        if let Err(why) = went {
            let note = format!("pages that come and go: {why}");
            // Each of the four steps would say it.
            self.probe.notes.retain(|said| *said != note);
            self.probe.notes.push(note);
        }
    }

    pub(super) fn finish_pages(&mut self) {
        self.probe.loops = std::mem::take(&mut self.rounds).end(self.round_bytes());
    }

    /// A fork's pages, of which the profile's figure is settled.
    pub(super) fn forks(&mut self) {
        match self.at_home(|sink| forks::measure(sink, self.available)).and_then(|measured| measured) {
            Ok(slope) => self.probe.fork = Some(slope),
            Err(why) => self.lack("path.copy_entry_ns", why),
        }
    }

    fn round_bytes(&self) -> usize {
        // What is to be had is asked once: a figure is of rounds of one size.
        bytes_beyond(self.l3, self.available)
    }

    fn exception(&mut self, faults: &Faults) {
        let populated = match &faults.populated {
            Ok(populated) => populated.median(),
            Err(why) => return self.lack("path.exception_ns", why.clone()),
        };
        let whole = faults.private.median();
        let how = format!(
            "the first write to a page of private anonymous memory, {whole:.0} ns, less {populated:.0} ns for a page of the same that \
             MADV_POPULATE_WRITE brings in"
        );
        self.add("path.exception_ns", &faults.private.map(|ns| (ns - populated).max(0.0)), how);
    }

    fn switch(&mut self, pipe: &Result<f64>) {
        let switch = pipe.clone().and_then(|pipe| Ok((kernel::switch(self.home.number)?, pipe)));
        match switch {
            Ok((samples, pipe)) => {
                let how = format!(
                    "a byte to and fro through pipes between two threads of a process on one CPU: {:.0} ns one way, \
                     less {pipe:.0} ns for its write and read",
                    samples.median()
                );
                self.add("path.context_switch_ns", &samples.map(|ns| (ns - pipe).max(0.0)), how);
            }
            Err(why) => self.lack("path.context_switch_ns", why),
        }
    }

    fn wakeup(&mut self, pipe: &Result<f64>) {
        let key = "path.wakeup_ns";
        // A sibling thread would share its core with the waker.
        let far = self.cpus.iter().rev().find(|cpu| cpu.core != self.home.core).or(self.cpus.get(1));
        let Some(far) = far else { return self.lack(key, "it takes a second CPU") };
        let cpus = CpuPair { one: self.home.number, other: far.number };
        let woken = pipe.clone().and_then(|pipe| Ok((kernel::wakeup(cpus)?, pipe)));
        match woken {
            Ok((samples, pipe)) => {
                let how = format!(
                    "CPU {} writes to a pipe that a thread on CPU {} has waited at for 50 us: {:.0} ns until it \
                     has read, less {:.0} ns, half a write and read",
                    cpus.one,
                    cpus.other,
                    samples.median(),
                    pipe / 2.0
                );
                self.add(key, &samples.map(|ns| (ns - pipe / 2.0).max(0.0)), how);
            }
            Err(why) => self.lack(key, why),
        }
    }
}
