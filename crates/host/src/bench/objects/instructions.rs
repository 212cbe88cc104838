//! The CPU's own count of instructions, where the system lends it to programs.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

/// `PERF_TYPE_HARDWARE`.
const HARDWARE: u32 = 0;
/// `PERF_COUNT_HW_INSTRUCTIONS`.
const INSTRUCTIONS: u64 = 1;
/// `exclude_kernel` and `exclude_hv`, bits 5 and 6.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The first version of `struct perf_event_attr`; the kernel takes what is not there as zeros.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

/// Counts the instructions of the thread that made it, outside of the kernel.
#[derive(Debug)]
pub(super) struct Instructions(File);

impl Instructions {
    /// A counter of this thread; `None` if the CPU or the system has none for us.
    pub(super) fn of_this_thread() -> Option<Self> {
        let attributes = Attributes {
            kind: HARDWARE,
            size: size_of::<Attributes>() as u32,
            config: INSTRUCTIONS,
            flags: USER_ONLY,
            ..Attributes::default()
        };
        let (this_thread, any_cpu, no_group) = (0, -1, -1);
        // SAFETY: the attributes are as large as they say, and the call only reads them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread as libc::pid_t,
                any_cpu as libc::c_int,
                no_group as libc::c_int,
                CLOSE_ON_EXEC,
            )
        };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the descriptor was opened just now and is nobody else's.
        Some(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Instructions so far; `None` if the system will not say.
    pub(super) fn so_far(&self) -> Option<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is a counter it counts; where there is none there is nothing to test.
    #[test]
    fn work_is_counted() {
        let Some(counter) = Instructions::of_this_thread() else { return };
        let before = counter.so_far().unwrap();
        let sum = (0..100_000u64).fold(0, |sum, number| std::hint::black_box(sum + number));
        let counted = counter.so_far().unwrap() - before;
        assert!(sum > 0 && counted >= 100_000, "{counted} instructions for 100000 additions");
    }
}
