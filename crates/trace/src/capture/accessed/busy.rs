//! Which processes are worth a look, and what CPU time they have had.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::Whose;
use crate::capture::procs;

/// A process with less resident is not looked at: a TLB of today holds the translations of all its pages, and few are walked to.
const SMALL_PAGES: u64 = 2048;
/// If more tasks than so many have come since one looked, the first of them are not looked at before all processes are thought of again.
const NEW_MAX: u32 = 64;

/// The processes that are not small.
#[derive(Debug)]
pub(super) struct Processes {
    whose: Whose,
    /// What they had used when they were last thought of.
    used: BTreeMap<u32, UsedAt>,
    /// All that were there then, small ones too.
    members: BTreeSet<u32>,
    /// The last number that was given to a task.
    newest: u32,
}

/// A process that is worth a look, and what it had used when processes were last thought of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) pid: u32,
    pub(super) before: UsedAt,
}

impl Processes {
    pub(super) fn new(whose: Whose) -> Self {
        Self { whose, used: BTreeMap::new(), members: BTreeSet::new(), newest: procs::newest().unwrap_or(0) }
    }

    /// Processes that have come of known ones since this was last asked, and are not small.
    pub(super) fn new_ones(&mut self) -> Vec<u32> {
        let Some(newest) = procs::newest() else { return vec![] };
        let since = self.newest.max(newest.saturating_sub(NEW_MAX)) + 1;
        self.newest = newest;
        let mut new = vec![];
        for pid in since..=newest {
            let is_of_them = procs::parent(pid).is_some_and(|parent| self.members.contains(&parent));
            // A thread has its process's parent, and no clock of a process.
            if is_of_them && process_ns(pid).is_some() {
                self.members.insert(pid);
                new.push(pid);
            }
        }
        new.retain(|&pid| procs::resident_pages(pid) >= SMALL_PAGES);
        new
    }

    /// Of those that were there when this was last asked, the one that had most CPU time since, if any had.
    pub(super) fn busiest(&mut self) -> Option<Busy> {
        self.members = self.whose.processes();
        let large = self.members.iter().copied().filter(|&pid| procs::resident_pages(pid) >= SMALL_PAGES);
        let used = large.filter_map(|pid| Some((pid, UsedAt::now(pid)?))).collect();
        let before = std::mem::replace(&mut self.used, used);
        let since = |(&pid, now): (&u32, &UsedAt)| {
            let before = *before.get(&pid)?;
            Some((Busy { pid, before }, now.ns.saturating_sub(before.ns)))
        };
        let (busy, most) = self.used.iter().filter_map(since).max_by_key(|(_, used)| *used)?;
        (most > 0).then_some(busy)
    }

    /// Whether a process was there when they were last thought of, or has come since.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.members.contains(&pid)
    }
}

/// CPU time that a process had had at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedAt {
    pub(super) at: Instant,
    /// The kernel knows what runs on another CPU to a tick of the clock, some ms.
    pub(super) ns: u64,
}

impl UsedAt {
    /// `None` of a process that is gone.
    pub(super) fn now(pid: u32) -> Option<Self> {
        Some(Self { at: Instant::now(), ns: process_ns(pid)? })
    }

    /// CPUs that the process kept busy since `before`.
    pub(super) fn cpus_since(self, before: Self) -> f64 {
        let passed = self.at.saturating_duration_since(before.at).as_nanos().max(1);
        self.ns.saturating_sub(before.ns) as f64 / passed as f64
    }
}

/// CPU time that this thread has had, ns.
pub(super) fn own_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time that a process has had, ns.
fn process_ns(pid: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: writes one number, which is ours.
    let result = unsafe { libc::clock_getcpuclockid(pid as i32, &raw mut clock) };
    (result == 0).then(|| clock_ns(clock)).flatten()
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is ours.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_seen_that_holds_as_much_as_this_process() {
        let memory = vec![1_u8; 2 * SMALL_PAGES as usize * 4096];
        let mut processes = Processes::new(Whose::Tree(std::process::id()));
        processes.busiest();
        // SAFETY: the child makes a system call only.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: waits.
                unsafe { libc::pause() };
            }
        }
        let new = processes.new_ones();
        // SAFETY: the child is ours, and is waited for once.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        // Other tests may have children too.
        assert!(new.contains(&(child as u32)) && processes.has(child as u32), "{child} {new:?}");
        assert!(!processes.new_ones().contains(&(child as u32)), "once");
        assert!(memory.contains(&1));
    }
}
