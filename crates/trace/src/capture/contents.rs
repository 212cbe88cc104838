//! What private pages hold, as far as swap asks: since 6.12 Linux notes of a page of zeros that it is one, and does not write it. Of each
//! mapping some pages are read, at equal distances from a place that differs from time to time; none is brought in for that.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::attach::{present, zeros};
use crate::event::PresentKind;
use crate::heat::Mapping;
use crate::stream::accessed::Contents;
use crate::stream::attached::{AttachedMap, PresentRun};

/// Of the rounds of a process, the first of so many reads pages too.
const ROUNDS_TO_READ: u32 = 4;
/// Pages that are read of a mapping.
const READ: u64 = 64;
/// A mapping with fewer pages resident is left out.
const FEW_PAGES: u64 = 256;
/// Bytes of a page that are read first: nearly all pages show there that they are not zeros.
const HEAD: usize = 128;
const PAGE: usize = mm::ids::PAGE_SIZE as usize;

/// Reads of private pages, from time to time.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Rounds of processes so far.
    rounds_of: BTreeMap<u32, u32>,
    turn: u64,
}

impl Reading {
    /// There was a round of `pid`: what its private pages hold, if that is due.
    pub(super) fn read(&mut self, pid: u32, mappings: &[Mapping]) -> Vec<Contents> {
        let round = self.rounds_of.entry(pid).or_default();
        let is_due = *round % ROUNDS_TO_READ == 0;
        *round += 1;
        self.turn += 1;
        // Who may not be looked into is taken to hold no zeros.
        if is_due { of(pid, mappings, self.turn).unwrap_or_default() } else { vec![] }
    }

    /// Forgets processes.
    pub(super) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.rounds_of.retain(|pid, _| is_there(*pid));
    }
}

/// Looks into private pages of `mappings` of process `pid`; `turn` decides where. Mappings without such pages are left out.
///
/// # Errors
/// Whoever may not be looked into, or is gone.
fn of(pid: u32, mappings: &[Mapping], turn: u64) -> io::Result<Vec<Contents>> {
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let large = mappings.iter().filter(|mapping| mapping.resident_kib / 4 >= FEW_PAGES);
    let mut all = vec![];
    for mapping in large {
        let pages = u32::try_from((mapping.end - mapping.start) >> mm::ids::PAGE_SHIFT).unwrap_or(u32::MAX);
        let map = AttachedMap { address: mapping.start, pages, ..AttachedMap::default() };
        let is_private = |run: &PresentRun| matches!(run.kind, PresentKind::Anonymous | PresentKind::Huge);
        let runs: Vec<PresentRun> = present::of(pid, &[map])?.into_iter().filter(is_private).collect();
        // What was unmapped meanwhile is not counted.
        let found: Vec<bool> =
            places(&runs, turn).into_iter().filter_map(|at| is_zero_at(&memory, at).ok()).collect();
        if !found.is_empty() {
            let zeros = found.iter().filter(|is_zero| **is_zero).count() as u32;
            all.push(Contents { address: mapping.start, read: found.len() as u32, zeros });
        }
    }
    Ok(all)
}

/// Addresses of [`READ`] pages of `runs`, or of all if these have no more.
fn places(runs: &[PresentRun], turn: u64) -> Vec<u64> {
    let all: u64 = runs.iter().map(|run| u64::from(run.pages)).sum();
    let wanted = all.min(READ);
    let Some(apart) = all.checked_div(wanted) else { return vec![] };
    // A prime number: other places each time.
    let mut next = turn.wrapping_mul(7919) % apart;
    let (mut before, mut found) = (0, vec![]);
    for run in runs {
        let end = before + u64::from(run.pages);
        while next < end && (found.len() as u64) < wanted {
            found.push(run.address + (next - before) * PAGE as u64);
            next += apart;
        }
        before = end;
    }
    found
}

fn is_zero_at(memory: &File, address: u64) -> io::Result<bool> {
    let mut page = [0; PAGE];
    memory.read_exact_at(&mut page[..HEAD], address)?;
    if !zeros::is_zero(&page[..HEAD]) {
        return Ok(false);
    }
    memory.read_exact_at(&mut page[HEAD..], address + HEAD as u64)?;
    Ok(zeros::is_zero(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(page: u64, pages: u32) -> PresentRun {
        PresentRun { address: page * PAGE as u64, pages, kind: PresentKind::Anonymous }
    }

    #[test]
    fn pages_at_equal_distances_are_read_in_all_that_is_there() {
        let pages = |runs: &[PresentRun], turn| -> Vec<u64> {
            places(runs, turn).iter().map(|address| address / PAGE as u64).collect()
        };
        assert_eq!(pages(&[], 1), [0_u64; 0]);
        assert_eq!(pages(&[run(10, 2), run(20, 1)], 5), [10, 11, 20]);
        let spread = pages(&[run(1000, 96), run(5000, 96)], 0);
        assert_eq!((spread.len(), spread[0], spread[1], spread[32]), (64, 1000, 1003, 5000));
        assert_eq!(pages(&[run(1000, 192)], 2)[0], 1000 + 7919 * 2 % 3);
    }

    #[test]
    fn pages_of_zeros_of_this_process_are_told_from_others() {
        let mut memory = vec![1_u8; 2048 * PAGE];
        let start = memory.as_ptr() as usize;
        let first = start.next_multiple_of(PAGE) - start;
        memory[first..first + 1024 * PAGE].fill(0);
        // Zeros but for the last byte.
        memory[first + PAGE - 1] = 1;
        let mapping = Mapping {
            start: (start + first) as u64,
            end: (start + first + 2047 * PAGE) as u64,
            resident_kib: 8192,
            ..Mapping::default()
        };
        let found = of(std::process::id(), &[mapping], 0).unwrap();
        assert_eq!((found.len(), found[0].read), (1, 64));
        assert!((30..=34).contains(&found[0].zeros), "{found:?}");
        assert!(memory.contains(&0));
    }
}
