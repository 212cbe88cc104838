//! Which CPU a thread runs on: from restartable sequences, where the C library registers them for every thread (glibc
//! from 2.35 on), by one load; else from `sched_getcpu`; where that fails too, every thread gets a number of its own.
//!
//! The number may be stale by the time it is used. That is allowed: it picks a pageset, whose lock does the rest.

use std::ffi::CStr;
use std::num::NonZeroIsize;
use std::sync::atomic::{AtomicU32, Ordering};

use mm::Cpu;

/// What the first eight bytes of the C library's area hold, the CPU number in the second four.
const RSEQ_BYTES: u32 = 8;

/// Tells CPU numbers below a limit; larger ones are folded into it by modulo.
#[derive(Clone, Copy, Debug)]
pub struct CpuNumbers {
    count: u32,
    /// Where a thread's area is, from its thread pointer.
    rseq: Option<NonZeroIsize>,
}

impl CpuNumbers {
    /// Numbers below `count`, which is 1 to 65536.
    pub fn new(count: u32) -> Self {
        Self { count: count.clamp(1, 1 << 16), rseq: rseq_offset() }
    }

    /// The same without restartable sequences.
    #[must_use]
    pub fn without_rseq(self) -> Self {
        Self { rseq: None, ..self }
    }

    /// The CPU that this thread runs on.
    #[inline]
    pub fn current(&self) -> Cpu {
        if let Some(offset) = self.rseq {
            // SAFETY: `rseq_offset` found this offset and that the area is registered for the process's threads.
            let cpu = unsafe { load_cpu(offset) };
            if cpu < self.count {
                return Cpu(cpu as u16);
            }
        }
        self.fold()
    }

    #[cold]
    fn fold(&self) -> Cpu {
        // SAFETY: the call has no preconditions.
        let cpu = unsafe { libc::sched_getcpu() };
        let number = u32::try_from(cpu).unwrap_or_else(|_| thread_number());
        Cpu((number % self.count) as u16)
    }
}

/// This thread's number, by order of asking.
pub(crate) fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only that no two get the same number matters.
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn rseq_offset() -> Option<NonZeroIsize> {
    let offset = symbol(c"__rseq_offset")?.cast::<isize>();
    let size = symbol(c"__rseq_size")?.cast::<u32>();
    // SAFETY: glibc documents `__rseq_offset` as a `ptrdiff_t` and `__rseq_size` as an `unsigned int`, both constant
    // after start-up.
    let (offset, size) = unsafe { (*offset, *size) };
    if size < RSEQ_BYTES { None } else { NonZeroIsize::new(offset) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn rseq_offset() -> Option<NonZeroIsize> {
    None
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn symbol(name: &CStr) -> Option<*const libc::c_void> {
    // SAFETY: `name` is a C string; RTLD_DEFAULT searches what is loaded already.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}

/// Reads `cpu_id` of this thread's area. Not `pure`: the kernel writes it.
///
/// # Safety
/// `offset` is glibc's `__rseq_offset` and its area has at least eight bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn load_cpu(offset: NonZeroIsize) -> u32 {
    let cpu: u32;
    // SAFETY: fs holds the thread pointer, and by the caller's word the area lies at `offset` from it.
    unsafe {
        std::arch::asm!(
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            cpu = out(reg) cpu,
            offset = in(reg) offset.get(),
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

/// Reads `cpu_id` of this thread's area. Not `pure`: the kernel writes it.
///
/// # Safety
/// `offset` is glibc's `__rseq_offset` and its area has at least eight bytes.
#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn load_cpu(offset: NonZeroIsize) -> u32 {
    let cpu: u32;
    // SAFETY: tpidr_el0 holds the thread pointer, and by the caller's word the area lies at `offset` from it.
    unsafe {
        std::arch::asm!(
            "mrs {base}, tpidr_el0",
            "add {base}, {base}, {offset}",
            "ldr {cpu:w}, [{base}, #4]",
            base = out(reg) _,
            cpu = lateout(reg) cpu,
            offset = in(reg) offset.get(),
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
unsafe fn load_cpu(_offset: NonZeroIsize) -> u32 {
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_the_count() {
        for count in [1, 2, 3, 1000] {
            for numbers in [CpuNumbers::new(count), CpuNumbers::new(count).without_rseq()] {
                std::thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| assert!(u32::from(numbers.current().0) < count));
                    }
                });
            }
        }
    }

    /// Pinned to a CPU, both sources name it; where pinning is refused there is nothing to compare.
    #[test]
    fn restartable_sequences_and_getcpu_agree() {
        let numbers = CpuNumbers::new(1 << 16);
        // SAFETY: a `cpu_set_t` of zeros is an empty set, and the calls get its true size.
        let pinned = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
        };
        if pinned {
            assert_eq!(numbers.current(), numbers.without_rseq().current());
        }
    }
}
