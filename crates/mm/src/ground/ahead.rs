//! Asking the processor that this runs on for data some time before it is needed: descriptors of pages lie anywhere in memory, and whoever
//! works through many of them knows which come next. It changes nothing but time.

/// The line at `data` will be read or written soon.
#[inline]
pub(crate) fn fetch_ahead<T>(data: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch faults at no address and changes nothing that a program could see; every x86-64 has it.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(data).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = data;
}
