//! What is present of a process's maps: by the ioctl `PAGEMAP_SCAN` (Linux 6.7), which gives runs of pages; before, page by page,
//! where huge pages cannot be told from small ones.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::event::PresentKind;
use crate::stream::attached::{AttachedMap, PresentRun};

/// The kernel's number for the ioctl: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// Categories of pages.
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const PFNZERO: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;
/// Bits of a page's word in pagemap.
const WORD_PRESENT: u64 = 1 << 63;
const WORD_SWAPPED: u64 = 1 << 62;
const WORD_FILE: u64 = 1 << 61;
/// Runs that one call gives.
const REGIONS: usize = 4096;
/// Words that are read at a time, and pages of a map beyond which it is passed over: reading them would take minutes.
const WORDS: usize = 1 << 15;
const WALKED_PAGES_MAX: u32 = 1 << 26;

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// What is present of `maps`.
pub(in crate::capture) fn of(pid: u32, maps: &[AttachedMap]) -> io::Result<Vec<PresentRun>> {
    let file = File::open(format!("/proc/{pid}/pagemap"))?;
    match scan_all(&file, maps) {
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => walk_all(&file, maps),
        result => result,
    }
}

fn end_of(map: &AttachedMap) -> u64 {
    map.address + (u64::from(map.pages) << mm::ids::PAGE_SHIFT)
}

fn scan_all(file: &File, maps: &[AttachedMap]) -> io::Result<Vec<PresentRun>> {
    let mut regions = vec![Region::default(); REGIONS];
    let mut runs = vec![];
    for map in maps {
        let (mut at, end) = (map.address, end_of(map));
        while at < end {
            let (found, walked) = scan(file, [at, end], &mut regions)?;
            for region in &regions[..found] {
                push(
                    &mut runs,
                    region.start,
                    (region.end - region.start) >> mm::ids::PAGE_SHIFT,
                    region.categories,
                );
            }
            if walked <= at {
                break;
            }
            at = walked;
        }
    }
    Ok(runs)
}

/// The runs from `start` to `end`, as many as fit: their number, and the address up to which they are known.
fn scan(file: &File, [start, end]: [u64; 2], regions: &mut [Region]) -> io::Result<(usize, u64)> {
    let mut arguments = ScanArguments {
        size: size_of::<ScanArguments>() as u64,
        start,
        end,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        category_anyof_mask: PRESENT | SWAPPED,
        return_mask: FILE | PRESENT | SWAPPED | PFNZERO | HUGE,
        ..ScanArguments::default()
    };
    // SAFETY: the arguments say how large they are, and where the regions lie and how many; both live through the call.
    let found = unsafe { libc::ioctl(file.as_raw_fd(), PAGEMAP_SCAN, &raw mut arguments) };
    if found < 0 { Err(io::Error::last_os_error()) } else { Ok((found as usize, arguments.walk_end)) }
}

fn push(runs: &mut Vec<PresentRun>, address: u64, pages: u64, categories: u64) {
    let kind = match categories {
        of if of & SWAPPED != 0 => PresentKind::Swapped,
        of if of & PFNZERO != 0 => PresentKind::Zero,
        of if of & FILE != 0 => PresentKind::File,
        of if of & HUGE != 0 => PresentKind::Huge,
        _ => PresentKind::Anonymous,
    };
    let pages = pages.try_into().unwrap_or(u32::MAX);
    if let Some(last) = runs.last_mut().filter(|last: &&mut PresentRun| last.kind == kind) {
        let joined = last.pages.checked_add(pages);
        if last.address + (u64::from(last.pages) << mm::ids::PAGE_SHIFT) == address {
            if let Some(joined) = joined {
                last.pages = joined;
                return;
            }
        }
    }
    runs.push(PresentRun { address, pages, kind });
}

fn walk_all(file: &File, maps: &[AttachedMap]) -> io::Result<Vec<PresentRun>> {
    let mut runs = vec![];
    let mut bytes = vec![0; WORDS * 8];
    for map in maps.iter().filter(|map| map.pages <= WALKED_PAGES_MAX) {
        let (mut page, end) = (map.address >> mm::ids::PAGE_SHIFT, end_of(map) >> mm::ids::PAGE_SHIFT);
        while page < end {
            let wanted = ((end - page) as usize).min(WORDS) * 8;
            let got = file.read_at(&mut bytes[..wanted], page * 8)? / 8;
            if got == 0 {
                break;
            }
            for (index, word) in bytes[..got * 8].chunks_exact(8).enumerate() {
                let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                let categories = [(WORD_SWAPPED, SWAPPED), (WORD_FILE, FILE), (WORD_PRESENT, PRESENT)];
                let categories =
                    categories.iter().filter(|(bit, _)| word & bit != 0).fold(0, |all, (_, of)| all | of);
                if categories & (PRESENT | SWAPPED) != 0 {
                    push(&mut runs, (page + index as u64) << mm::ids::PAGE_SHIFT, 1, categories);
                }
            }
            page += got as u64;
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    const PAGE: usize = 4096;

    #[test]
    fn own_memory_is_found_by_both_ways() {
        let len = 64 * PAGE;
        // SAFETY: a fresh mapping, of which every other page of the first half is written to and the last one read.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(ptr::null_mut(), len, 3, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, len, libc::MADV_NOHUGEPAGE);
            for page in (0..32).step_by(2) {
                memory.cast::<u8>().add(page * PAGE).write_volatile(1);
            }
            memory.cast::<u8>().add(63 * PAGE).read_volatile();
            memory as u64
        };
        let map = AttachedMap { address: start, pages: 64, ..AttachedMap::default() };
        let file = File::open("/proc/self/pagemap").unwrap();
        let walked = walk_all(&file, std::slice::from_ref(&map)).unwrap();
        let of = |page: u64, kind| PresentRun { address: start + page * PAGE as u64, pages: 1, kind };
        let mut expected: Vec<PresentRun> =
            (0..32).step_by(2).map(|page| of(page, PresentKind::Anonymous)).collect();
        assert_eq!(walked[..16], expected);
        match scan_all(&file, &[map]) {
            Ok(scanned) => {
                expected.push(of(63, PresentKind::Zero));
                assert_eq!(scanned, expected);
            }
            Err(error) => eprintln!("skipped: PAGEMAP_SCAN: {error}"),
        }
    }

    #[test]
    fn runs_of_a_kind_are_joined() {
        let mut runs = vec![];
        push(&mut runs, 0x1000, 2, PRESENT);
        push(&mut runs, 0x3000, 1, PRESENT);
        push(&mut runs, 0x4000, 1, PRESENT | FILE);
        push(&mut runs, 0x20_0000, 512, PRESENT | HUGE);
        push(&mut runs, 0x40_0000, 1, SWAPPED);
        let kinds: Vec<(u32, PresentKind)> = runs.iter().map(|run| (run.pages, run.kind)).collect();
        let expected = [
            (3, PresentKind::Anonymous),
            (1, PresentKind::File),
            (512, PresentKind::Huge),
            (1, PresentKind::Swapped),
        ];
        assert_eq!(kinds, expected);
    }
}
