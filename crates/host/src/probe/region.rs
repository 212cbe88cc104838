//! Memory to measure in: mapped, given by the kernel before anything is timed, in huge pages where it has them.
//!
//! The words are atomics, so that several threads may share a region; a relaxed access is an ordinary one to the CPU.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::{fs, io, ptr, slice};

use mm::ids::PAGE_SIZE;

/// Bytes of a cache line, and its words.
pub(super) const LINE_BYTES: usize = 64;
pub(super) const LINE_WORDS: usize = LINE_BYTES / 8;
/// Bytes of a page, and its words.
pub(crate) const PAGE_BYTES: usize = PAGE_SIZE as usize;
pub(crate) const PAGE_WORDS: usize = PAGE_BYTES / 8;
const HUGE_BYTES: usize = 2 << 20;

/// Which pages a region is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pages {
    /// 2 MiB where the kernel gives them, so that the TLB misses little.
    Huge,
    /// 4 KiB each.
    Small,
}

/// Who sees what is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    /// This process alone.
    Private,
    /// All who have it mapped: there is a file of the kernel's own behind it.
    Shared,
}

/// A mapping of this process.
#[derive(Debug)]
pub(crate) struct MappedRegion {
    /// What was mapped.
    mapped: *mut u8,
    mapped_bytes: usize,
    /// The part that is used, aligned to a huge page.
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping is the region's own, and its memory is only reached through atomics or by `string`'s functions,
// whose callers see to it that nobody else uses the page.
unsafe impl Send for MappedRegion {}
// SAFETY: as above.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    /// Maps `bytes`, rounded up to whole huge pages, and writes to each page.
    ///
    /// # Errors
    /// What mmap says.
    pub(super) fn new(bytes: usize, pages: Pages) -> io::Result<Self> {
        let region = Self::reserve(bytes, pages, Sharing::Private)?;
        region.populate();
        Ok(region)
    }

    /// Maps `bytes` of 4 KiB pages, rounded up to whole huge pages, without writing to them.
    ///
    /// # Errors
    /// What mmap says.
    pub(crate) fn untouched(bytes: usize, sharing: Sharing) -> io::Result<Self> {
        Self::reserve(bytes, Pages::Small, sharing)
    }

    /// As [`MappedRegion::new`], with memory of the system's node `node` and of no other.
    ///
    /// # Errors
    /// What mmap or mbind say.
    pub(super) fn on_node(bytes: usize, pages: Pages, node: u32) -> io::Result<Self> {
        let region = Self::reserve(bytes, pages, Sharing::Private)?;
        let mut mask = [0u64; 16];
        let word = mask.get_mut(node as usize / 64).ok_or(io::ErrorKind::Unsupported)?;
        *word = 1 << (node % 64);
        // SAFETY: the range is this mapping's, and the mask has as many bits as the call is told.
        let status = unsafe {
            let (mode, bits) = (libc::MPOL_BIND, mask.len() * 64);
            libc::syscall(libc::SYS_mbind, region.base, region.bytes, mode, mask.as_ptr(), bits, 0)
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        region.populate();
        Ok(region)
    }

    fn reserve(bytes: usize, pages: Pages, sharing: Sharing) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_BYTES);
        let mapped_bytes = bytes + HUGE_BYTES;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let sharing = match sharing {
            Sharing::Private => libc::MAP_PRIVATE,
            Sharing::Shared => libc::MAP_SHARED,
        };
        let flags = sharing | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping where the kernel likes touches nothing that exists.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), mapped_bytes, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped: *mut u8 = mapped.cast();
        // SAFETY: the offset is less than HUGE_BYTES, of which there is one more than is used.
        let base = unsafe { mapped.add(mapped.align_offset(HUGE_BYTES)) };
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        // Kernels without huge pages refuse; `huge_share` tells what came of it.
        // SAFETY: advice on a range of this mapping changes no contents.
        unsafe { libc::madvise(base.cast(), bytes, advice) };
        Ok(Self { mapped, mapped_bytes, base, bytes })
    }

    fn populate(&self) {
        for word in self.words().iter().step_by(PAGE_WORDS) {
            word.store(0, Relaxed);
        }
    }

    /// All words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped, aligned and zero at first; every bit pattern is an AtomicU64.
        unsafe { slice::from_raw_parts(self.base.cast(), self.bytes / 8) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn page_count(&self) -> usize {
        self.bytes / PAGE_BYTES
    }

    /// Where page `page` begins.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn page(&self, page: usize) -> *mut u8 {
        assert!(page < self.page_count(), "page {page} is beyond the region");
        // SAFETY: just checked to be inside of the mapping.
        unsafe { self.base.add(page * PAGE_BYTES) }
    }

    /// Brings the first `pages` in, to be written to, by one call; the kernel knows it from 5.14 on.
    pub(super) fn bring_in(&self, pages: usize) -> io::Result<()> {
        self.advise_first(pages * PAGE_BYTES, libc::MADV_POPULATE_WRITE)
    }

    /// Takes the pages out of the process's address space: private ones go back to the kernel, shared ones stay in
    /// their file. The next access to each faults.
    pub(super) fn unmap_pages(&self) -> io::Result<()> {
        self.advise(libc::MADV_DONTNEED)
    }

    /// Takes the pages of a shared region out of their file, and so gives them back to the kernel.
    pub(super) fn truncate(&self) -> io::Result<()> {
        self.advise(libc::MADV_REMOVE)
    }

    /// A child of this process gets none of it.
    pub(super) fn keep_from_children(&self) -> io::Result<()> {
        self.advise(libc::MADV_DONTFORK)
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        self.advise_first(self.bytes, advice)
    }

    /// On the first `bytes`, or all that there are.
    fn advise_first(&self, bytes: usize, advice: libc::c_int) -> io::Result<()> {
        let bytes = bytes.min(self.bytes);
        // SAFETY: the range is this mapping's, of anonymous memory, which reads as it was or as zeros afterwards.
        let status = unsafe { libc::madvise(self.base.cast(), bytes, advice) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The part of the region that is in huge pages, 0 to 1; `None` if the kernel does not say.
    pub(super) fn huge_share(&self) -> Option<f64> {
        let text = fs::read_to_string("/proc/self/smaps").ok()?;
        let (from, to) = (self.base.addr(), self.base.addr() + self.bytes);
        let (mut overlaps, mut kib) = (false, 0u64);
        for line in text.lines() {
            if let Some(mapping) = range(line) {
                overlaps = mapping.start < to && mapping.end > from;
            } else if let Some(rest) = line.strip_prefix("AnonHugePages:").filter(|_| overlaps) {
                kib += rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?;
            }
        }
        Some((kib as f64 * 1024.0 / self.bytes as f64).min(1.0))
    }
}

/// The addresses at the beginning of a mapping's line in smaps.
fn range(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own; `words` and `page` borrow it.
        unsafe { libc::munmap(self.mapped.cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pages_are_the_same_memory() {
        let region = MappedRegion::new(1, Pages::Huge).unwrap();
        assert_eq!((region.bytes(), region.page_count()), (HUGE_BYTES, 512));
        region.words()[PAGE_WORDS * 3].store(7, Relaxed);
        assert_eq!(region.page(3).addr(), ptr::from_ref(&region.words()[PAGE_WORDS * 3]).addr());
        region.unmap_pages().unwrap();
        assert_eq!(region.words()[PAGE_WORDS * 3].load(Relaxed), 0);
    }

    #[test]
    fn shared_pages_stay_until_their_file_is_cut() {
        let region = MappedRegion::untouched(1, Sharing::Shared).unwrap();
        region.words()[0].store(7, Relaxed);
        region.unmap_pages().unwrap();
        assert_eq!(region.words()[0].load(Relaxed), 7);
        region.truncate().unwrap();
        assert_eq!(region.words()[0].load(Relaxed), 0);
    }

    #[test]
    fn as_many_pages_are_brought_in_as_are_asked_for() {
        let region = MappedRegion::untouched(1, Sharing::Private).unwrap();
        let there = || {
            let mut pages = vec![0u8; region.page_count()];
            // SAFETY: the call writes a byte for each page of the range, which is the region's.
            let status = unsafe { libc::mincore(region.base.cast(), region.bytes, pages.as_mut_ptr()) };
            assert_eq!(status, 0);
            pages.iter().filter(|page| **page & 1 == 1).count()
        };
        assert_eq!(there(), 0);
        match region.bring_in(128) {
            Ok(()) => assert_eq!(there(), 128),
            // Before Linux 5.14.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
        }
    }

    #[test]
    fn small_pages_are_not_huge() {
        let region = MappedRegion::new(8 << 20, Pages::Small).unwrap();
        assert!(region.huge_share().is_none_or(|share| share == 0.0));
    }
}
