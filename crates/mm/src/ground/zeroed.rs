//! Tables with an entry for every frame: memory that the system gives zeroed costs nothing until it is written to.

use alloc::boxed::Box;

/// A type of which all-zero bytes are a value, the same as its default.
///
/// # Safety
/// They must be.
pub(crate) unsafe trait Zeroable: Default {}

/// `count` zeroed entries.
#[cfg(not(shuttle))]
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Box<[T]> {
    use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
    let layout = Layout::array::<T>(count).expect("fewer than 2^32 entries of some bytes");
    if layout.size() == 0 {
        return (0..count).map(|_| T::default()).collect();
    }
    // SAFETY: the layout's size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: `memory` was allocated just now with the layout of `[T; count]`, and all-zero bytes are values of a
    // `Zeroable`.
    unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(memory.cast::<T>(), count)) }
}

/// Shuttle's atomics have more to them than their bytes.
#[cfg(shuttle)]
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Box<[T]> {
    (0..count).map(|_| T::default()).collect()
}
