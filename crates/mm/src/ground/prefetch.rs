//! Asks the processor that all this runs on for memory which will be read soon. What is kept of a large machine is in none of its caches,
//! and where it is known early which parts come next, waiting for them can be had at once. mm asks so for descriptors, sim for lines.

/// Asks for the cache line of `at`. It changes nothing but time; processors whose way of asking is not known here are not asked.
#[inline]
pub fn prefetch<T>(at: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing into the program and does not fault, and `at` points at memory that is there.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(at).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
