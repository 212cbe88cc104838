//! Which CPUs this process may use, and keeping a thread on one of them.

use std::io;

/// Words of a CPU mask: enough for 65536 CPUs, more than any kernel is built for.
const WORDS: usize = 1024;

/// The CPUs that this thread may run on, ascending.
///
/// # Errors
/// What the system says.
pub fn allowed() -> io::Result<Vec<u32>> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most as many bytes as it is told there are.
    let status = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    let set = |cpu: &u32| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..WORDS as u32 * 64).filter(set).collect())
}

/// Keeps this thread on `cpu` from here on.
///
/// # Errors
/// What the system says: the CPU is offline, or not one of the process's.
pub(crate) fn pin(cpu: u32) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    let Some(word) = mask.get_mut(cpu as usize / 64) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    *word = 1 << (cpu % 64);
    // SAFETY: the mask has as many bytes as the call is told, and is only read.
    let status = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let cpus = allowed().unwrap();
        for &cpu in &cpus {
            let seen = std::thread::spawn(move || pin(cpu).map(|()| allowed().unwrap())).join().unwrap();
            assert_eq!(seen.unwrap(), [cpu]);
        }
        assert_eq!(allowed().unwrap(), cpus, "other threads are not touched");
        assert!(pin(u32::MAX).is_err());
    }
}
