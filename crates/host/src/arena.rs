//! Memory of this process, mapped in one piece: frame 0 at its base, frame n at n pages above.
//!
//! Only address space is reserved; the kernel gives memory page by page when it is first written. The base is aligned
//! to the largest block, so that a block of any order is aligned to its own size in this address space too.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use mm::ids::{PAGE_SHIFT, PAGE_SIZE};
use mm::{Addr, Order, Pfn};

/// Bytes of the largest block.
const ALIGN: usize = (PAGE_SIZE as usize) << mm::ids::MAX_PAGE_ORDER;

/// Reserved address space, given back when this is dropped.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    frames: u32,
}

// SAFETY: an `Arena` is an address and a length. It hands out addresses, never references.
unsafe impl Send for Arena {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves address space for `frames` page frames, at least one.
    ///
    /// # Errors
    /// What mmap says.
    pub fn reserve(frames: u32) -> io::Result<Self> {
        let bytes = (frames.max(1) as usize) << PAGE_SHIFT;
        // More than asked for, so that an aligned base lies within; the rest is given back.
        let reserved = map(bytes + ALIGN)?;
        let before = reserved.as_ptr().align_offset(ALIGN);
        // SAFETY: `before` is less than ALIGN, so the base lies inside the mapping.
        let base = unsafe { reserved.add(before) };
        // SAFETY: both ends are page-aligned parts of the mapping just made, outside of what `base` will serve.
        unsafe {
            unmap(reserved, before);
            unmap(base.add(bytes), ALIGN - before);
        }
        Ok(Self { base, frames: frames.max(1) })
    }

    /// Has the kernel give all of the memory now, in huge pages where it has them: no first write will fault.
    pub(crate) fn populate(&mut self) {
        let bytes = (self.frames as usize) << PAGE_SHIFT;
        // Advice only: without huge pages it is refused, and all goes on.
        // SAFETY: the range is this mapping; advice changes no contents.
        unsafe { libc::madvise(self.base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        for page in 0..self.frames as usize {
            // SAFETY: the page is inside of the mapping, and by `&mut self` nobody uses it.
            unsafe { self.base.add(page << PAGE_SHIFT).write_volatile(0) };
        }
    }

    /// How many frames there are.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The address of the block of `order` at `pfn`.
    ///
    /// # Panics
    /// If the block reaches beyond the last frame.
    #[inline]
    pub fn address(&self, pfn: Pfn, order: Order) -> NonNull<u8> {
        let end = u64::from(pfn.0) + u64::from(order.pages());
        assert!(end <= u64::from(self.frames), "{pfn} of {order} is beyond the last frame");
        // SAFETY: just checked to be inside of the mapping.
        unsafe { self.base.add((pfn.0 as usize) << PAGE_SHIFT) }
    }

    /// The address of the object of `bytes` bytes at `at`.
    ///
    /// # Panics
    /// If the object reaches beyond the last frame.
    #[inline]
    pub(crate) fn object(&self, at: Addr, bytes: u32) -> NonNull<u8> {
        let end = at.0.saturating_add(u64::from(bytes));
        assert!(
            end <= u64::from(self.frames) << PAGE_SHIFT,
            "{bytes} bytes at {at} are beyond the last frame"
        );
        // SAFETY: just checked to be inside of the mapping.
        unsafe { self.base.add(at.0 as usize) }
    }

    /// The word at `at`, as an atomic: allocator and owner of an object may look at the same time, if only by the
    /// owner's mistake.
    ///
    /// # Panics
    /// If `at` is not a multiple of 8 or beyond the last frame.
    #[inline]
    pub(crate) fn word(&self, at: Addr) -> &AtomicU64 {
        assert!(at.0 % 8 == 0 && at.0 >> PAGE_SHIFT < u64::from(self.frames), "there is no word at {at}");
        // SAFETY: just checked to be inside of the mapping and aligned; zeroed or stored bytes are a valid integer. The
        // word is part of a block that mm holds, and whoever owns an object hands it back before mm looks into it.
        unsafe { self.base.add(at.0 as usize).cast::<AtomicU64>().as_ref() }
    }

    /// The frame that `address` lies in; `None` if it is not of this arena.
    pub fn frame_of(&self, address: *const u8) -> Option<Pfn> {
        let offset = address.addr().checked_sub(self.base.addr().get())?;
        let frame = u32::try_from(offset >> PAGE_SHIFT).ok()?;
        (frame < self.frames).then_some(Pfn(frame))
    }

    /// Asks for the memory of `frames` to come from the system's node `node` as long as it has any.
    ///
    /// # Errors
    /// What mbind says; the memory then comes from wherever the kernel likes.
    pub(crate) fn prefer_node(&self, frames: std::ops::Range<u32>, node: u32) -> io::Result<()> {
        let mut mask = [0u64; 16];
        let Some(word) = mask.get_mut(node as usize / 64) else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        *word = 1 << (node % 64);
        let start = self.address(Pfn(frames.start), Order::ZERO);
        let bytes = (frames.end.min(self.frames) - frames.start) as usize * PAGE_SIZE as usize;
        // SAFETY: the range is part of this mapping, and the mask has as many bits as the call is told.
        let status = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start.as_ptr(),
                bytes,
                libc::MPOL_PREFERRED,
                mask.as_ptr(),
                mask.len() * 64,
                0,
            )
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this arena's own, and whoever used its addresses is bound to its life.
        unsafe { unmap(self.base, (self.frames as usize) << PAGE_SHIFT) };
    }
}

fn map(bytes: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping where the kernel likes touches nothing that exists.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)
}

/// # Safety
/// The range is part of a mapping of ours, page-aligned, and used by nobody any more.
unsafe fn unmap(address: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's word.
        unsafe { libc::munmap(address.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_written() {
        let arena = Arena::reserve(3000).unwrap();
        let block = arena.address(Pfn(1024), Order::MAX);
        assert_eq!(block.as_ptr().align_offset(ALIGN), 0);
        // SAFETY: the arena is this test's alone.
        unsafe {
            block.as_ptr().write_bytes(7, 4096);
            assert_eq!(block.add(4095).read(), 7);
        }
        assert_eq!(arena.frame_of(block.as_ptr()), Some(Pfn(1024)));
    }

    #[test]
    fn addresses_outside_are_nobodys() {
        let arena = Arena::reserve(10).unwrap();
        let last = arena.address(Pfn(9), Order::ZERO).as_ptr();
        assert_eq!(arena.frame_of(last.wrapping_add(4095)), Some(Pfn(9)));
        assert_eq!(arena.frame_of(last.wrapping_add(4096)), None);
        assert_eq!(arena.frame_of(ptr::null()), None);
    }

    #[test]
    #[should_panic(expected = "beyond the last frame")]
    fn a_block_beyond_the_end_has_no_address() {
        let _ = Arena::reserve(10).unwrap().address(Pfn(8), Order::new(2).unwrap());
    }
}
