//! A cgroup that a command runs in, with limits to its memory: of version 2 where the memory controller is there, else of version 1.
//! It is removed again as soon as nothing is in it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Where cgroups are.
const ROOT: &str = "/sys/fs/cgroup";
/// Tries to remove a cgroup whose last task may be on its way out.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A file of a cgroup, and what is written to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupLimit {
    /// The file's name in version 2.
    pub file: &'static str,
    /// The one in version 1 that does the same.
    pub v1: Option<&'static str>,
    /// The text.
    pub text: String,
}

/// A cgroup.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    is_v2: bool,
}

impl Cgroup {
    /// Makes one, called after this process, with `limits`.
    ///
    /// # Errors
    /// No rights, no memory controller, a limit that this version lacks or the kernel refuses; the sentence says which file.
    pub fn create(limits: &[CgroupLimit]) -> Result<Self, String> {
        let root = Path::new(ROOT);
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let is_v2 = controllers.split_ascii_whitespace().any(|controller| controller == "memory");
        let above = if is_v2 { root.to_owned() } else { root.join("memory") };
        let folder = above.join(format!("freehold-{}", std::process::id()));
        let at = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        if is_v2 {
            let control = above.join("cgroup.subtree_control");
            fs::write(&control, "+memory").map_err(|error| at(&control, error))?;
        }
        fs::create_dir(&folder).map_err(|error| at(&folder, error))?;
        let cgroup = Self { folder, is_v2 };
        for limit in limits {
            let name = match (is_v2, limit.v1) {
                (true, _) => limit.file,
                (false, Some(name)) => name,
                (false, None) => return Err(format!("cgroups of version 1 have no {}", limit.file)),
            };
            // Version 1 says that there is no limit by -1.
            let text = if !is_v2 && limit.text == "max" { "-1" } else { &limit.text };
            let path = cgroup.folder.join(name);
            fs::write(&path, text).map_err(|error| at(&path, error))?;
        }
        Ok(cgroup)
    }

    /// What a process writes `0` to in order to be in it.
    pub(crate) fn entry(&self) -> io::Result<OwnedFd> {
        let file = fs::OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))?;
        Ok(file.into())
    }

    /// What its files count: `memory.stat`, the largest usage in bytes as `peak`, how often tasks were killed as `oom_kill`.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let mut counters = pairs(&read("memory.stat"));
        let [events, peak] = if self.is_v2 {
            ["memory.events", "memory.peak"]
        } else {
            ["memory.oom_control", "memory.max_usage_in_bytes"]
        };
        counters.extend(pairs(&read(events)).into_iter().filter(|(name, _)| name == "oom_kill"));
        if let Ok(peak) = read(peak).trim().parse() {
            counters.insert("peak".to_owned(), peak);
        }
        counters
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Lines of a name and a number.
fn pairs(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

/// Moves the calling process through a descriptor of [`Cgroup::entry`]; between fork and exec, where nothing may be allocated.
pub(crate) fn enter(entry: &OwnedFd) -> io::Result<()> {
    let zero = b"0";
    // SAFETY: the descriptor is open as long as `entry` lives, and the byte lives through the call.
    let written = unsafe { libc::write(entry.as_raw_fd(), zero.as_ptr().cast(), zero.len()) };
    if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_name_and_a_number_are_read() {
        let read = pairs("oom_kill_disable 0\nunder_oom 0\noom_kill 3\nbroken\n");
        assert_eq!((read["oom_kill"], read.len()), (3, 3));
    }

    /// Where this may be done at all: as root, with a memory controller.
    #[test]
    fn a_limit_that_a_version_lacks_is_said_and_nothing_is_left() {
        let limits = [
            CgroupLimit { file: "memory.max", v1: Some("memory.limit_in_bytes"), text: "max".into() },
            CgroupLimit { file: "memory.no-such-file", v1: None, text: "1".into() },
        ];
        let Err(said) = Cgroup::create(&limits) else { panic!("there is no such file") };
        assert!(!said.contains('\n'), "{said}");
        let name = format!("freehold-{}", std::process::id());
        assert!(
            !Path::new(ROOT).join("memory").join(&name).exists() && !Path::new(ROOT).join(&name).exists()
        );
    }
}
