//! A heap that asks for huge pages for its large pieces. The descriptors of a simulated machine are one piece of some
//! hundred MiB, and a simulation reads all of those whose memory it uses. Experiment `pcp-batch` at 1/16 takes 9 to 13 % less time with it (measured by glibc's
//! own tunable).

use std::alloc::{GlobalAlloc, Layout, System};

const HUGE: usize = 2 << 20;

/// From so many bytes on a piece is a mapping of its own (glibc's `DEFAULT_MMAP_THRESHOLD_MAX`).
const LARGE: usize = 32 << 20;
/// From so many bytes on a piece is touched here and there: descriptors of 128 GiB and more, of which a workload uses some
/// gigabytes. With huge pages the host would clear more than is used (experiment `thp-fault`: a quarter more system time, no less of a user's).
const SPARSE: usize = 512 << 20;

/// The system's allocator, and huge pages for what is large.
#[derive(Debug)]
pub struct HugeHeap;

// SAFETY: every call goes to the system's allocator with the caller's arguments, and its answer to the caller.
unsafe impl GlobalAlloc for HugeHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the trait's contract, which is System's too.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; `at` is System's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; `at` is System's.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// `at` again, of which whole huge pages are asked for if it is large, and not so large that it will stay empty.
fn advised(at: *mut u8, bytes: usize) -> *mut u8 {
    if (LARGE..SPARSE).contains(&bytes) && !at.is_null() {
        let skipped = at.align_offset(HUGE);
        let whole = bytes.saturating_sub(skipped) / HUGE * HUGE;
        // SAFETY: the range lies within the piece that was allocated just now; the advice changes no contents. A kernel
        // that does not take it leaves all as it is.
        unsafe { libc::madvise(at.wrapping_add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the mapping with `at` has been advised to be of huge pages: `hg` among its flags in smaps.
    fn is_advised(at: *const u8) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("this process's mappings");
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split_whitespace().next().and_then(|word| word.split_once('-'));
            let bounds = range.map(|(low, high)| {
                (usize::from_str_radix(low, 16).ok(), usize::from_str_radix(high, 16).ok())
            });
            if let Some((Some(low), Some(high))) = bounds {
                inside = (low..high).contains(&at.addr());
            } else if inside && line.starts_with("VmFlags:") {
                return line.split_whitespace().any(|flag| flag == "hg");
            }
        }
        false
    }

    #[test]
    fn large_pieces_are_advised_and_others_are_not() {
        for (bytes, expected) in [(1 << 20, false), (64 << 20, true)] {
            let layout = Layout::from_size_align(bytes, 64).expect("a layout");
            // SAFETY: the layout is not of size 0; the piece is written within its bounds and given back with its layout.
            unsafe {
                let at = HugeHeap.alloc_zeroed(layout);
                assert!(!at.is_null());
                let (middle, last) = (at.add(bytes / 2), at.add(bytes - 1));
                assert_eq!((middle.read(), last.read()), (0, 0));
                assert_eq!(is_advised(middle), expected, "{bytes} bytes");
                last.write(7);
                let more = HugeHeap.realloc(at, layout, 2 * bytes);
                assert_eq!(more.add(bytes - 1).read(), 7);
                HugeHeap.dealloc(more, Layout::from_size_align(2 * bytes, 64).expect("a layout"));
            }
        }
    }
}
