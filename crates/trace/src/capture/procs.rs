//! The tasks that exist when a recording starts, and the processes of a tree, from /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::event::Task;

/// A process as /proc shows it.
struct Process {
    pid: u32,
    parent: u32,
    tasks: Vec<Task>,
}

/// The processes that are the workload at the start.
#[derive(Clone, Debug)]
pub(super) enum Workload {
    /// None yet, or all.
    Unnamed,
    /// A process and its descendants.
    Tree(u32),
    /// These.
    These(BTreeSet<u32>),
}

impl Workload {
    /// The first of its processes that is known.
    pub(super) fn first(&self) -> Option<u32> {
        match self {
            Self::Unnamed => None,
            Self::Tree(pid) => Some(*pid),
            Self::These(pids) => pids.first().copied(),
        }
    }
}

/// All tasks of the system.
pub(super) fn snapshot(workload: &Workload) -> Vec<Task> {
    let processes: Vec<Process> = numbers(Path::new("/proc")).filter_map(read_process).collect();
    let parents = processes.iter().map(|process| (process.pid, process.parent));
    let workload = match workload {
        Workload::Unnamed => BTreeSet::new(),
        Workload::Tree(root) => descendants(*root, parents),
        Workload::These(pids) => pids.clone(),
    };
    let mut tasks: Vec<Task> = vec![Task { name: "swapper".into(), ..Task::default() }];
    for process in processes {
        let in_workload = workload.contains(&process.pid);
        tasks.extend(process.tasks.into_iter().map(|task| Task { in_workload, ..task }));
    }
    tasks
}

/// Whether a process exists and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    parent_and_state(pid).is_some_and(|(_, state)| state != 'Z')
}

/// The process of a tree that has most memory resident; its root if nobody can be seen.
pub(crate) fn largest(root: u32) -> u32 {
    tree(root).into_iter().max_by_key(|&pid| resident_pages(pid)).unwrap_or(root)
}

/// Whether tasks have the numbers here that the kernel itself calls them by: those of its first PID namespace.
pub(super) fn is_root_namespace() -> bool {
    /// The inode that every kernel gives to that namespace.
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new(FIRST))
}

/// A process's name, as `comm` has it.
pub(crate) fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The words of a process's command, as far as it lets them be seen.
pub(crate) fn command(pid: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words.trim_end_matches('\0').split('\0').map(str::to_owned).collect()
}

/// Asks a process and its descendants to end.
pub(crate) fn terminate_tree(root: u32) {
    for pid in tree(root) {
        // SAFETY: sends a signal; no memory is involved.
        unsafe { libc::kill(pid as i32, libc::SIGTERM) };
    }
}

/// A process and its descendants.
pub(super) fn tree(root: u32) -> BTreeSet<u32> {
    let parents = numbers(Path::new("/proc")).filter_map(|pid| Some((pid, parent_and_state(pid)?.0)));
    descendants(root, parents)
}

/// CPU time that a process has had, in seconds, to 10 ms.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // utime and stime, the 14th and 15th figure, in the kernel's ticks for programs: 100 a second everywhere.
    let figures = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(2);
    let ticks: Vec<u64> = figures.filter_map(|figure| figure.parse().ok()).collect();
    Some(ticks.iter().sum::<u64>() as f64 / 100.0)
}

/// The second figure of statm; 0 of a process that is gone.
pub(super) fn resident_pages(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read_process(pid: u32) -> Option<Process> {
    let (parent, _) = parent_and_state(pid)?;
    let directory = format!("/proc/{pid}/task");
    let tasks = numbers(Path::new(&directory)).filter_map(|tid| {
        let name = fs::read(format!("{directory}/{tid}/comm")).ok()?;
        let name = String::from_utf8_lossy(&name).trim_end().to_owned();
        Some(Task { pid, tid, name, in_workload: false })
    });
    Some(Process { pid, parent, tasks: tasks.collect() })
}

/// The figures of /proc/PID/stat after the state, the parent's number first; `None` of a process that is gone.
pub(super) fn stat_figures(pid: u32) -> Option<Vec<u64>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let figures = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    // Some are negative; none that matters.
    Some(figures.map(|figure| figure.parse().unwrap_or(0)).collect())
}

/// The threads of a process.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{pid}/task"))).collect()
}

/// The parent of a process; `None` of one that is gone.
pub(super) fn parent(pid: u32) -> Option<u32> {
    Some(parent_and_state(pid)?.0)
}

/// The last number that was given to a task.
pub(super) fn newest() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().last()?.parse().ok()
}

/// From `PID (NAME) STATE PARENT …`; the name may hold anything, parentheses too.
fn parent_and_state(pid: u32) -> Option<(u32, char)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// A process and all that come from it, of processes with their parents.
fn descendants(root: u32, processes: impl Iterator<Item = (u32, u32)>) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, parent) in processes {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_finds_itself_and_its_threads() {
        let me = std::process::id();
        let tasks = snapshot(&Workload::Tree(me));
        let own: Vec<_> = tasks.iter().filter(|task| task.pid == me).collect();
        assert!(own.iter().any(|task| task.tid == me));
        assert!(own.iter().all(|task| task.in_workload && !task.name.is_empty()));
        assert!(tasks.iter().any(|task| !task.in_workload));
        assert!(is_alive(me));
        assert!(!is_alive(u32::MAX));
    }
}
