//! Clearing and copying a page as kernels do it: on x86-64 by the CPU's string instructions, elsewhere by the C library.

use super::region::{MappedRegion, PAGE_BYTES};

/// How it is done, for a figure's source.
pub(super) const HOW: &str =
    if cfg!(target_arch = "x86_64") { "rep stosb, rep movsb" } else { "memset, memcpy" };

/// Fills page `page` with zeros.
pub(super) fn clear(region: &MappedRegion, page: usize) {
    // SAFETY: `page` gives the address of a whole page of the region, whose words may change at any time.
    unsafe { clear_at(region.page(page)) };
}

/// Copies page `from` to page `to`, which is another one.
pub(super) fn copy(region: &MappedRegion, from: usize, to: usize) {
    debug_assert_ne!(from, to);
    // SAFETY: as for `clear`; two different pages do not overlap.
    unsafe { copy_at(region.page(from), region.page(to)) };
}

/// # Safety
/// A page at `to` may be written.
#[cfg(target_arch = "x86_64")]
unsafe fn clear_at(to: *mut u8) {
    // SAFETY: writes PAGE_BYTES bytes at `to`, as the caller allows; the direction flag is clear by convention.
    unsafe {
        std::arch::asm!(
            "rep stosb",
            inout("rcx") PAGE_BYTES => _,
            inout("rdi") to => _,
            in("al") 0u8,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// A page at `from` may be read and one at `to` written, and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_at(from: *const u8, to: *mut u8) {
    // SAFETY: reads and writes PAGE_BYTES bytes, as the caller allows; the direction flag is clear by convention.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") PAGE_BYTES => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// A page at `to` may be written.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn clear_at(to: *mut u8) {
    // SAFETY: the caller's word.
    unsafe { to.write_bytes(0, PAGE_BYTES) };
}

/// # Safety
/// A page at `from` may be read and one at `to` written, and they do not overlap.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_at(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's word.
    unsafe { to.copy_from_nonoverlapping(from, PAGE_BYTES) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::region::{PAGE_WORDS, Pages};
    use super::*;

    #[test]
    fn a_page_is_copied_and_cleared_to_its_ends() {
        let region = MappedRegion::new(1, Pages::Small).unwrap();
        let words = region.words();
        words.iter().take(4 * PAGE_WORDS).zip(1..).for_each(|(word, value)| word.store(value, Relaxed));
        copy(&region, 1, 2);
        clear(&region, 0);
        let at = |word: usize| words[word].load(Relaxed);
        assert_eq!((at(0), at(PAGE_WORDS - 1), at(PAGE_WORDS)), (0, 0, PAGE_WORDS as u64 + 1));
        assert_eq!((at(2 * PAGE_WORDS), at(3 * PAGE_WORDS - 1)), (at(PAGE_WORDS), at(2 * PAGE_WORDS - 1)));
        assert_eq!(at(3 * PAGE_WORDS), 3 * PAGE_WORDS as u64 + 1);
    }
}
