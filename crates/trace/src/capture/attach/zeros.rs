//! Small pages of huge ones that hold nothing but zeros, read from /proc/PID/mem. A program may have written zeros, or read them:
//! those pages are a bound of what it never touched.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::event::PresentKind;
use crate::stream::attached::PresentRun;

/// Bytes that are read at a time.
const PIECE: usize = 2 << 20;
const PAGE: usize = mm::ids::PAGE_SIZE as usize;

/// `runs`, each of huge pages followed by those of its small pages that hold zeros alone. Where memory cannot be read none are
/// said to.
pub(super) fn beside(pid: u32, runs: Vec<PresentRun>) -> Vec<PresentRun> {
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return runs };
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        all.push(run);
        if run.kind == PresentKind::Huge {
            // What was unmapped meanwhile ends it.
            let _ = find(&memory, run, &mut all);
        }
    }
    all
}

fn find(memory: &File, run: PresentRun, found: &mut Vec<PresentRun>) -> io::Result<()> {
    let mut bytes = vec![0; PIECE];
    let end = run.address + u64::from(run.pages) * PAGE as u64;
    let mut at = run.address;
    while at < end {
        let piece = &mut bytes[..PIECE.min((end - at) as usize)];
        memory.read_exact_at(piece, at)?;
        for page in piece.chunks_exact(PAGE) {
            if is_zero(page) {
                push(found, at);
            }
            at += PAGE as u64;
        }
    }
    Ok(())
}

/// Whether `page` holds zeros alone.
pub(in crate::capture) fn is_zero(page: &[u8]) -> bool {
    page.chunks(64).all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

fn push(found: &mut Vec<PresentRun>, address: u64) {
    let goes_on = |last: &&mut PresentRun| {
        last.kind == PresentKind::HugeZeros && last.address + u64::from(last.pages) * PAGE as u64 == address
    };
    match found.last_mut().filter(goes_on) {
        Some(last) => last.pages += 1,
        None => found.push(PresentRun { address, pages: 1, kind: PresentKind::HugeZeros }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No huge page is needed: what is looked at is said to be one.
    #[test]
    fn pages_of_zeros_are_found_in_what_is_huge() {
        let mut memory = vec![0u8; 6 * PAGE];
        let start = memory.as_ptr() as usize;
        let first = start.next_multiple_of(PAGE) - start;
        memory[first + 2 * PAGE + 77] = 1;
        let address = (start + first) as u64;
        let huge = PresentRun { address, pages: 5, kind: PresentKind::Huge };
        let small = PresentRun { kind: PresentKind::Anonymous, ..huge };
        let zeros = |page: u64, pages| PresentRun {
            address: address + page * PAGE as u64,
            pages,
            kind: PresentKind::HugeZeros,
        };
        let found = beside(std::process::id(), vec![small, huge]);
        assert_eq!(found, [small, huge, zeros(0, 2), zeros(3, 2)]);
        assert_eq!(memory[first + 2 * PAGE + 77], 1);
    }
}
