//! A ring of records that the kernel writes and we read, as perf_event_open(2) describes it: one page of positions,
//! then a power of two of pages of records.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::error::RecordError;
use crate::stream::record::RecordHead;

/// A mapped ring.
#[derive(Debug)]
pub(super) struct Ring {
    page: *mut perf_event_mmap_page,
    /// Bytes of records it holds, a power of two.
    size: usize,
    mapped: usize,
    fd: OwnedFd,
}

// SAFETY: the mapping belongs to the `Ring` alone, is valid in every thread, and reading needs `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of the event `fd`, of so many pages.
    pub(super) fn map(fd: OwnedFd, pages: usize, page_size: usize) -> Result<Self, RecordError> {
        let mapped = (pages + 1) * page_size;
        // SAFETY: a fresh mapping of an open file at an address of the kernel's choice touches no memory of ours.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if page == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) {
                return Err(RecordError::Permission(format!(
                    "the kernel will not lock {} KiB for each CPU's ring: run as root, ask for smaller rings or raise \
                     kernel.perf_event_mlock_kb",
                    mapped >> 10
                )));
            }
            return Err(RecordError::System { what: "mapping a ring of events", error });
        }
        Ok(Self { page: page.cast(), size: pages * page_size, mapped, fd })
    }

    /// The event's descriptor, for poll(2) and ioctl(2).
    pub(super) fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Bytes that the kernel has written since the ring was made.
    fn head(&self) -> &AtomicU64 {
        // SAFETY: an aligned u64 of the first page, mapped as long as `self`; the kernel and we access it by single
        // loads and stores only, which is what an atomic does.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page).data_head) }
    }

    /// Bytes that we are done with.
    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for `head`.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page).data_tail) }
    }

    /// Appends all records that are there to `out`, whole, and makes room for new ones.
    pub(super) fn drain(&mut self, out: &mut Vec<u8>) {
        // Pairs with the kernel's barrier before it publishes data_head: the records before it are written.
        let end = self.head().load(Ordering::Acquire);
        // Relaxed: nobody but this writes it.
        let start = self.tail().load(Ordering::Relaxed);
        let len = (end.wrapping_sub(start) as usize).min(self.size);
        let at = start as usize & (self.size - 1);
        let first = len.min(self.size - at);
        let page_size = self.mapped - self.size;
        out.reserve(len);
        // SAFETY: [tail, head) lies in the ring and belongs to us until data_tail passes it, so nobody writes there
        // while it is copied; `first` ends at the ring's end and the rest begins at its start.
        unsafe {
            let data = self.page.cast::<u8>().add(page_size);
            let free = out.as_mut_ptr().add(out.len());
            ptr::copy_nonoverlapping(data.add(at), free, first);
            ptr::copy_nonoverlapping(data, free.add(first), len - first);
            out.set_len(out.len() + len);
        }
        // Pairs with the kernel's barrier after it reads data_tail: our copy is done before it writes there.
        self.tail().store(end, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.cast(), self.mapped) };
    }
}

/// The records in what [`Ring::drain`] gave: head and body of each.
pub(super) fn records(mut bytes: &[u8]) -> impl Iterator<Item = (RecordHead, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk()?;
        let (head, len) = RecordHead::read(*head)?;
        let (body, rest) = rest.split_at_checked(len)?;
        bytes = rest;
        Some((head, body))
    })
}
