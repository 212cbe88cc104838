//! An array of the kernel's that programs and we both have mapped.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::AtomicU64;

use aya::maps::{Map, MapData};

/// The memory of an array. It is accessed as atomic words only.
#[derive(Debug)]
pub(super) struct Shared {
    words: *const AtomicU64,
    len: usize,
}

// SAFETY: the mapping belongs to the `Shared` alone, is valid in every thread, and is accessed by atomics only.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps `bytes` bytes of an array that was made mappable.
    pub(super) fn map(array: &Map, bytes: usize) -> io::Result<Self> {
        let Map::Array(data) = array else { return Err(io::ErrorKind::InvalidInput.into()) };
        Self::map_data(data, bytes)
    }

    fn map_data(data: &MapData, bytes: usize) -> io::Result<Self> {
        use std::os::fd::AsFd;
        let fd = data.fd().as_fd().as_raw_fd();
        // SAFETY: sysconf reads a constant.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mapped = bytes.next_multiple_of(page_size);
        let how = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of an open map at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), mapped, how, libc::MAP_SHARED, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { words: at.cast(), len: mapped / size_of::<u64>() })
    }

    /// Memory of our own, of so many words, for tests.
    #[cfg(test)]
    pub(super) fn anonymous(words: usize) -> Self {
        let len = words * size_of::<u64>();
        let how = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, how, kind, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Self { words: at.cast(), len: words }
    }

    /// The word at `index`; the last one if there are not so many.
    #[inline]
    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the mapping has `len` words, is never empty, aligned to a page and lives as long as `self`; the kernel's
        // programs access it by whole words.
        unsafe { &*self.words.add(index.min(self.len - 1)) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map_data` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.cast_mut().cast(), self.len * size_of::<u64>()) };
    }
}
