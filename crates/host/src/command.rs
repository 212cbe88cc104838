//! A command run for real, with what the kernel says that it used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::cgroup::{self, Cgroup, CgroupLimit};

/// Counters of /proc/vmstat that tell what memory management did, by how their names begin.
const COUNTERS: [&str; 13] = [
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_zero_page_alloc",
    "pgfault",
    "pgmajfault",
    "numa_",
    "compact_",
    "pswp",
    "workingset_refault",
    "pgscan_",
    "pgsteal_",
    "allocstall",
];
/// How often somebody looks whether the command is to be stopped.
const LOOK: Duration = Duration::from_millis(20);
/// How long a command that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// What a command and the descendants that it waited for used from start to end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommandUse {
    /// From the making of its process to its end, ns.
    pub wall_ns: u64,
    /// CPU time in user mode, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Faults that needed no disk.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// The most pages that one process of them had resident. The kernel counts the memory that the process had before it became the
    /// command, which is this program's, too: `None` where it is no more than that.
    pub peak_rss_pages: Option<u64>,
    /// By how much counters of the whole machine grew meanwhile, by their names in /proc/vmstat.
    pub counters: BTreeMap<String, u64>,
    /// What the cgroup counted that it ran in; empty where it was in none of its own.
    pub cgroup: BTreeMap<String, u64>,
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// By itself: its exit status, or 128 + the signal, and what it used.
    Ended(i32, CommandUse),
    /// `stop` was set; it was asked to end, then made to.
    Stopped,
}

/// Runs `words`, which are a program and its arguments, until it ends or `stop` becomes true, in a cgroup of its own if there are
/// `limits`. It has this program's stderr.
///
/// # Errors
/// A program that cannot be started, a limit that cannot be set.
///
/// # Panics
/// If there is no word.
pub fn run(words: &[OsString], limits: &[CgroupLimit], stop: &AtomicBool) -> io::Result<Outcome> {
    let cgroup = (!limits.is_empty()).then(|| Cgroup::create(limits)).transpose();
    let cgroup = cgroup.map_err(io::Error::other)?;
    let entry = cgroup.as_ref().map(Cgroup::entry).transpose()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    // A process that is forked begins with the memory that this one has. One that shares it until it becomes the command, as std makes
    // it otherwise, would be counted with the most that this one ever had.
    // SAFETY: between fork and exec one byte is written to a descriptor that is open.
    unsafe { command.pre_exec(move || entry.as_ref().map_or(Ok(()), cgroup::enter)) };
    let before = counters();
    let floor = resident_pages();
    let start = Instant::now();
    let pid = command.spawn()?.id();
    let ended = AtomicBool::new(false);
    let ending = thread::scope(|scope| {
        let watch = scope.spawn(|| watch(pid, &ended, stop));
        let ending = wait_unreaped(pid);
        let wall = start.elapsed();
        // Release pairs with the acquire of the watcher, which signals only a process that nobody has reaped.
        ended.store(true, Ordering::Release);
        watch.thread().unpark();
        ending.map(|()| wall)
    })?;
    let (status, mut used) = reap(pid)?;
    if stop.load(Ordering::Acquire) {
        return Ok(Outcome::Stopped);
    }
    used.wall_ns = ending.as_nanos() as u64;
    used.peak_rss_pages = used.peak_rss_pages.filter(|peak| *peak > floor);
    let grown = |(name, after): (String, u64)| {
        let before = before.get(&name).copied().unwrap_or(0);
        (name, after.saturating_sub(before))
    };
    used.counters = counters().into_iter().map(grown).collect();
    used.cgroup = cgroup.map(|cgroup| cgroup.counters()).unwrap_or_default();
    Ok(Outcome::Ended(status, used))
}

/// Asks the process to end when `stop` is set, and makes it end where it does not.
fn watch(pid: u32, ended: &AtomicBool, stop: &AtomicBool) {
    let mut asked: Option<Instant> = None;
    while !ended.load(Ordering::Acquire) {
        if stop.load(Ordering::Acquire) {
            let first = *asked.get_or_insert_with(Instant::now);
            let signal = if first.elapsed() > GRACE { libc::SIGKILL } else { libc::SIGTERM };
            // SAFETY: it signals a child that is not reaped before this thread has ended, so the number is still its own.
            unsafe { libc::kill(pid as i32, signal) };
        }
        thread::park_timeout(LOOK);
    }
}

/// Waits for the end of a child and leaves it to be reaped, so that its number stays its own.
fn wait_unreaped(pid: u32) -> io::Result<()> {
    loop {
        // SAFETY: siginfo_t is plain numbers, for which zeros are a value, and lives through the call.
        let mut info = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
        // SAFETY: as above.
        let done = unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
        match io::Error::last_os_error() {
            _ if done == 0 => return Ok(()),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

fn reap(pid: u32) -> io::Result<(i32, CommandUse)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are a value.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: both live through the call, which fills them in.
    if unsafe { libc::wait4(pid as i32, &raw mut status, 0, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let status =
        if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let used = CommandUse {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        peak_rss_pages: Some((usage.ru_maxrss as u64) << 10 >> mm::ids::PAGE_SHIFT),
        ..CommandUse::default()
    };
    Ok((status, used))
}

/// Pages that this program has resident.
fn resident_pages() -> u64 {
    let sizes = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    sizes.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

/// The counters as they stand.
fn counters() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let wanted = |name: &str| COUNTERS.iter().any(|begin| name.starts_with(begin));
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let wanted = pairs.filter(|(name, _)| wanted(name));
    wanted.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn its_status_is_told() {
        let ended = |script: &str| run(&words(&["sh", "-c", script]), &[], &AtomicBool::new(false)).unwrap();
        assert!(matches!(ended("exit 7"), Outcome::Ended(7, _)));
        assert!(matches!(ended("kill -9 $$"), Outcome::Ended(137, _)));
        assert!(run(&words(&["/no/such/program"]), &[], &AtomicBool::new(false)).is_err());
    }

    #[test]
    fn one_that_is_stopped_ends() {
        let stop = AtomicBool::new(true);
        assert_eq!(run(&words(&["sleep", "1000"]), &[], &stop).unwrap(), Outcome::Stopped);
    }
}
